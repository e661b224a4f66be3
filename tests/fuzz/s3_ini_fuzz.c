/*
 * s3_ini_fuzz.c - any bytes as a shared credentials or config file.
 */
#include "common/s3/ini.h"
#include "tests/lib/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    for (int is_config = 0; is_config < 2; is_config++) {
        XF_AUTO_INI section = {0};
        struct xf_err err;
        enum xf_code code = xf_ini_parse(
            "file", xf_str_n(data, size), XF_STR_LIT("default"), is_config == 1, &section, &err);

        XF_ASSERT(code == XF_OK || code == XF_E_CREDS);
        XF_ASSERT(section.n <= XF_INI_OPTIONS_MAX);
        for (size_t i = 0; i < section.n; i++) {
            XF_ASSERT(section.options[i].key.len > 0);
        }
        (void)xf_ini_get(&section, "region"); /* only that it ends */
    }
    return 0;
}
