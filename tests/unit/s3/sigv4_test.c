/*
 * sigv4_test.c - known answers: the vectors that AWS published (P1 to P7), odd keys, and full
 * requests (B1 to B19) that two independent signers agreed on.
 */
#include "common/s3/creds.h"
#include "common/s3/sigv4.h"
#include "common/s3/uri.h"
#include "tests/lib/test.h"

#define ACCESS "AKIAIOSFODNN7EXAMPLE"
#define SECRET "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
#define TOKEN  "TOKENEXAMPLE/with+chars=="
#define HOST   "examplebucket.s3.amazonaws.com"
#define EMPTY  XF_SIGV4_EMPTY_SHA256

struct vector {
    const char *name;
    const char *method;
    const char *path;        /* encoded */
    const char *query[14];   /* name, value, ... raw */
    const char *headers[16]; /* name, value, ... besides host, hash and date */
    const char *host;        /* NULL: HOST */
    const char *payload;     /* NULL: hash of the empty string */
    const char *region;      /* NULL: us-east-1 */
    const char *service;     /* NULL: s3; others sign no hash header */
    bool has_token;
    const char *canonical_sha; /* NULL: not known */
    const char *signature;
};

/* clang-format off */
static const struct vector vectors[] = {
    {"P1", "GET", "/test.txt", .headers = {"range", "bytes=0-9"},
     .canonical_sha = "7344ae5b7ee6c3e7e6b0fe0640412a37625d1fbfff95c48bbb2dc43964946972",
     .signature = "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"},
    {"P2", "PUT", "/test%24file.text",
     .headers = {"date", "Fri, 24 May 2013 00:00:00 GMT", "x-amz-storage-class", "REDUCED_REDUNDANCY"},
     .payload = "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072",
     .canonical_sha = "9e0e90d9c76de8fa5b200d8c849cd5b8dc7a3be3951ddb7f6a76b4158342019d",
     .signature = "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd"},
    {"P3", "GET", "/", .query = {"lifecycle", ""},
     .canonical_sha = "9766c798316ff2757b517bc739a67f6213b4ab36dd5da2f94eaebf79c77395ca",
     .signature = "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"},
    {"P4", "GET", "/", .query = {"max-keys", "2", "prefix", "J"},
     .canonical_sha = "df57d21db20da04d7fa30298dd4488ba3a2b47ca3a489c74750e0f1e7df1b9b7",
     .signature = "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"},
    {"P6", "PUT", "/examplebucket/chunkObject.txt", .host = "s3.amazonaws.com",
     .headers = {"content-encoding", "aws-chunked", "content-length", "66824",
                 "x-amz-decoded-content-length", "66560", "x-amz-storage-class", "REDUCED_REDUNDANCY"},
     .payload = XF_SIGV4_STREAMING,
     .canonical_sha = "cee3fed04b70f867d036f722359b0b1f2f0e5dc0efadbc082b76c4c60e316455",
     .signature = "4f232c4386841ef735655705268965c44a0e4690baa4adea153f7db9fa80a0a9"},
    {"P7", "PUT", "/examplebucket/chunkObject.txt", .host = "s3.amazonaws.com",
     .headers = {"content-encoding", "aws-chunked", "x-amz-trailer", "x-amz-checksum-crc32c",
                 "x-amz-decoded-content-length", "66560", "x-amz-storage-class", "REDUCED_REDUNDANCY"},
     .payload = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER",
     .canonical_sha = "44d48b8c2f70eae815a0198cc73d7a546a73a93359c070abbaa5e6c7de112559",
     .signature = "106e2a8a18243abcf37539882f36619c00e2dfc72633413f02d3b74544bfeb8e"},
    {"B1", "GET", "/",
     .query = {"list-type", "2", "prefix", "dir a+b/\xc3\xa9*'~", "start-after", "k/1 %2", "delimiter", "/",
               "fetch-owner", "true", "max-keys", "1000", "encoding-type", "url"},
     .headers = {"x-amz-optional-object-attributes", "RestoreStatus"},
     .signature = "522b77fce365915db41d970f2c549e8dd67e8b9ceca03647f165351987d7285a"},
    {"B2", "PUT", "/dst%20key",
     .headers = {"x-amz-copy-source", "src.bkt/a%20b/%C3%BC%2B%25.txt?versionId=3/L4kqtJlcpXroDTDmpUMLUo",
                 "x-amz-meta-x", "a b", "x-amz-metadata-directive", "REPLACE"},
     .signature = "8a4149b3688f8b788d46ec154bc2d29b11c7f77c25d74027dec0d1026319efc6"},
    {"B3", "PUT", "/dst", .query = {"uploadId", "VXBsb2FkIElE+/=", "partNumber", "1"},
     .headers = {"x-amz-copy-source", "src/a%20b?versionId=abc", "x-amz-copy-source-range", "bytes=0-5242879"},
     .signature = "1d22054399f90d7419ddb641a15846e533320ad3ebf86ca34b7826510565d8dd"},
    {"B4", "PUT", "/k",
     .headers = {"content-type", "text/plain", "x-amz-meta-name", "v1  two", "x-amz-tagging", "a=b%20c&d="},
     .payload = "185f8db32271fe25f561a6fc938b2e264306ec304eda518007d1764826381969",
     .signature = "70e1180c3f8082f0652c64d0ef9d2827512c88273770613f9378e8897b90fb9c"},
    {"B5", "GET", "/test.txt", .headers = {"x-amz-checksum-mode", "ENABLED"}, .has_token = true,
     .signature = "c0a97382655725b5acc44e18e835d8abae633634a2c096edceed5186f677de83"},
    {"B6", "GET", "/k", .query = {"attributes", ""},
     .headers = {"x-amz-object-attributes", "ETag,ObjectParts,ObjectSize", "x-amz-max-parts", "1000",
                 "x-amz-part-number-marker", "5"},
     .signature = "4f0afd7e5bb75052c8a81368deaaff26f525d804c7a3465861603088b4a8d0b8"},
    {"B7", "PUT", "/big.bin", .query = {"partNumber", "2", "uploadId", "VXBsb2FkIElE+/="},
     .payload = XF_SIGV4_UNSIGNED,
     .signature = "a354155e90f4d5a3e04c58371b2d6d5a3f6607944dd12b0df24c670a339392f3"},
    {"B8", "PUT", "/big.bin",
     .headers = {"content-encoding", "aws-chunked", "x-amz-decoded-content-length", "5",
                 "x-amz-trailer", "x-amz-checksum-crc32"},
     .payload = "STREAMING-UNSIGNED-PAYLOAD-TRAILER",
     .signature = "361bfb8a0ad7a214d9ce0b0de91e598ff845c4318ecd0eaf980aa66e3246d335"},
    {"B9", "GET", "/",
     .query = {"versions", "", "prefix", "a b+c/~*'\xc3\xa9", "key-marker", "k&=/?#", "max-keys", "1000",
               "encoding-type", "url"},
     .signature = "8a2570d7af4e6b6416528dedd25ad98c8e4b0e3041c86dbce3af2b551ffae194"},
    {"B10", "GET", "/k", .query = {"tagging", "", "versionId", "3/L4kqtJlcpXroDTDmpUMLUo"},
     .signature = "7732d0197f719f26667b928406ebff73f802d7cfa6ba508eaf82d1cae702e1ad"},
    {"B11", "GET", "/bkt/a%20b", .host = "minio.local:9000",
     .signature = "f34a731ca2bc9adefce078dd4b385703dfaae480448bf07eb73986b6df3527fb"},
    {"B12", "GET", "/s3/v1/bkt/k", .query = {"list-type", "2"}, .host = "host:8443",
     .signature = "96d2190a08c8ef1d6bdd96e4c66ecb130782b152d04f37a41d9075d0a677eb10"},
    {"B13", "GET", "/bkt/k", .host = "[2001:db8::1]:9000",
     .signature = "234b48da9fdb612e5b1113dc73153988677a7d146c5bda7aa68f578c0dc0a977"},
    {"B14", "GET", "/test.txt",
     .signature = "df548e2ce037944d03f3e68682813b093763996d597cf890ca3d9037fd231eb4"},
    {"B15", "HEAD", "/", .host = "examplebucket.s3.eu-central-1.amazonaws.com", .region = "eu-central-1",
     .signature = "cc97bbe3feddb0e55a7ce785fc2f3948cedb818a6e79182011751a7a49a61bfc"},
    {"B17", "POST", "/", .host = "sts.us-west-2.amazonaws.com", .region = "us-west-2", .service = "sts",
     .headers = {"content-type", "application/x-www-form-urlencoded; charset=utf-8"},
     .payload = "Action=AssumeRole&Version=2011-06-15&RoleArn=arn%3Aaws%3Aiam%3A%3A123456789012%3Arole%2Fdemo"
                "&RoleSessionName=xfer&DurationSeconds=3600&ExternalId=ext+1",
     .signature = "b111ef18eeb2c2ba4138270860f3b21b9ad08800dc945fb3d5c969e0d5f2180f"},
    {"B18", "POST", "/", .host = "sts.us-east-1.amazonaws.com", .service = "sts",
     .headers = {"content-type", "application/x-www-form-urlencoded; charset=utf-8"},
     .payload = "Action=GetCallerIdentity&Version=2011-06-15",
     .signature = "5060a6aac8d74d9a10ff06986d367d744e811e6087eeef02e61e1eeaaf933f82"},
    {"B19", "POST", "/", .host = "redshift-data.us-west-2.amazonaws.com", .region = "us-west-2",
     .service = "redshift-data",
     .headers = {"content-type", "application/x-amz-json-1.1", "x-amz-target", "RedshiftData.ExecuteStatement"},
     .payload = "{\"ClusterIdentifier\": \"c1\", \"Database\": \"dev\", \"DbUser\": \"u\", "
                "\"Sql\": \"select 1\", \"ClientToken\": \"t\"}",
     .signature = "058e1b25be06c3ba0df943f800db0db46ef608cd578e2ca7fba6d3c30f66bc26"},
};

static const struct {
    const char *key;
    const char *path;
    const char *signature;
} odd_keys[] = {
    {"a b", "/a%20b", "148958ace6e83bc7d9893e7fb92c63d466140bd5acf2a0722d6fea26964f5651"},
    {"a+b", "/a%2Bb", "7523a42446ee9a64714e5f5dd7b1170963c0ad092ceaf8e589232dbc7873cc91"},
    {"100%", "/100%25", "1f0e407b0e0dbb1c03529a298ba038b5929c764bee828f8e7b2e6221e66cc78f"},
    {"%41", "/%2541", "b69b15f86d556ece73a8e10186a52e2a28bcdfcbd9259d277cdcd99b6a6f4642"},
    {"\xd0\xba\xd0\xbb\xd1\x8e\xd1\x87/\xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e.txt",
     "/%D0%BA%D0%BB%D1%8E%D1%87/%E6%97%A5%E6%9C%AC%E8%AA%9E.txt",
     "994692636688237aecdaffac378b6672cf18a7eaf5f2b61d89a84ccea1a3b3a7"},
    {"a//b", "/a//b", "d3b7d8e709518ef28050efa35968623c064ee44d1a12877eab753fd6548bb875"},
    {"/lead", "//lead", "cc0b7d34d74c62c25b3a582ab0f329741975208904f7277d855f50bd93e10494"},
    {"~tilde", "/~tilde", "78cd99ae3a0fd280e2b4f20d6384ccdd29640849148729e8c7e6792d4cee44ba"},
    {"star*", "/star%2A", "b013dac06a9542bc024ba6f0eb5c961d84e8887dbcdff910af9491800bf35c23"},
    {"it's(1)!", "/it%27s%281%29%21", "843f6202bbfd741a1238b77fedbdf2d4f70fdaccd0e02f092ddef89b5e5a92d5"},
    {"a&b=c?d#e", "/a%26b%3Dc%3Fd%23e", "d3ec6620a504d857cb8ad2da23945c4529dfbd87feafbe024fb0f4bab437fef2"},
    {"semi;colon:at@comma,", "/semi%3Bcolon%3Aat%40comma%2C",
     "b3ccee1ce7b7a7ff3ea50f07ddf2a45d7c5874d07f8303651b44f97d8aae78c1"},
    {"a/./b/../c", "/a/./b/../c", "ca6210a274567b48609aa00700dd648c0e28239d97f6942750ac1be09d05c70a"},
    {"tab\tnl\n", "/tab%09nl%0A", "95654c11c9e2aa6a3a422fe3aac780f42e41fa5f7e6e701cd1cb1883c457b6c5"},
    {"back\\slash", "/back%5Cslash", "20a812ca9dd67c0ae8f0ffd33b62c4d94503cbd6a6f4de635f67ea1f29532f58"},
    {"{}[]|^`\"<>$", "/%7B%7D%5B%5D%7C%5E%60%22%3C%3E%24",
     "53a80d347ac318a4133b69c968acc03dd6b2f8295b4d82cc8c892abb55a0830b"},
    {"\xc3\xa9-nfc", "/%C3%A9-nfc", "fa82d439b415870f4def73b45b38b48945c91f2bccaf8970f45cff9adf5a915e"},
    {"trailing/", "/trailing/", "9116efa9a3580d0b2464fc120642c2d96089258d19839f85e2d734a02904583f"},
    {"emoji\xf0\x9f\x98\x80", "/emoji%F0%9F%98%80",
     "e63d60d744d4b6d06adc9c3a1a9060b524b36ffdbdab3da0323cd44c69f7a147"},
};
/* clang-format on */

struct fx {
    struct xf_sigv4 *signer;
    struct xf_creds *creds;
    struct xf_creds *session;
};

static int setup(void **state)
{
    static struct fx fx;
    struct xf_err err;

    fx.signer = xf_sigv4_new();
    assert_int_equal(
        xf_creds_new(xf_str_c(ACCESS), xf_str_c(SECRET), XF_STR_EMPTY, 0, &fx.creds, &err), XF_OK);
    assert_int_equal(
        xf_creds_new(xf_str_c(ACCESS), xf_str_c(SECRET), xf_str_c(TOKEN), 0, &fx.session, &err),
        XF_OK);
    *state = &fx;
    return 0;
}

static int teardown(void **state)
{
    struct fx *fx = *state;

    xf_sigv4_free(fx->signer);
    xf_creds_unref(fx->creds);
    xf_creds_unref(fx->session);
    return 0;
}

struct built {
    struct xf_sigv4_pair query[8];
    struct xf_sigv4_pair headers[16];
    struct xf_sigv4_req req;
    char hash[XF_SIGV4_HEX_LEN + 1];
};

static void build(struct fx *fx, const struct vector *v, struct built *b)
{
    const char *region = v->region != NULL ? v->region : "us-east-1";
    const char *payload = v->payload != NULL ? v->payload : EMPTY;
    struct xf_err err;
    size_t n = 0;

    memset(b, 0, sizeof(*b));
    for (size_t i = 0; i + 1 < 14 && v->query[i] != NULL; i += 2) {
        b->query[b->req.n_query++] =
            (struct xf_sigv4_pair){xf_str_c(v->query[i]), xf_str_c(v->query[i + 1])};
    }
    for (size_t i = 0; i + 1 < 16 && v->headers[i] != NULL; i += 2) {
        b->headers[n++] =
            (struct xf_sigv4_pair){xf_str_c(v->headers[i]), xf_str_c(v->headers[i + 1])};
    }
    if (v->service != NULL) { /* other services: the body is given, its hash is no header */
        assert_int_equal(xf_sigv4_sha256(fx->signer, xf_str_c(payload), b->hash, &err), XF_OK);
        payload = b->hash;
    } else {
        b->headers[n++] =
            (struct xf_sigv4_pair){XF_STR_LIT("x-amz-content-sha256"), xf_str_c(payload)};
    }
    if (v->has_token) {
        b->headers[n++] =
            (struct xf_sigv4_pair){XF_STR_LIT("x-amz-security-token"), xf_str_c(TOKEN)};
    }
    b->headers[n++] =
        (struct xf_sigv4_pair){XF_STR_LIT("x-amz-date"), XF_STR_LIT("20130524T000000Z")};
    b->headers[n++] =
        (struct xf_sigv4_pair){XF_STR_LIT("host"), xf_str_c(v->host != NULL ? v->host : HOST)};
    b->req.method = xf_str_c(v->method);
    b->req.path = xf_str_c(v->path);
    b->req.query = b->query;
    b->req.headers = b->headers;
    b->req.n_headers = n;
    b->req.payload = xf_str_c(payload);
    b->req.region = xf_str_c(region);
    b->req.service = xf_str_c(v->service != NULL ? v->service : "s3");
    memcpy(b->req.date, "20130524T000000Z", sizeof(b->req.date));
}

static void check(struct fx *fx, const struct vector *v)
{
    struct built b;
    struct xf_err err;
    struct xf_sigv4_extra signature = {0};
    char sha[XF_SIGV4_HEX_LEN + 1];
    XF_AUTO_BUF auth = {0};
    XF_AUTO_BUF canonical = {0};

    build(fx, v, &b);
    signature.canonical = &canonical;
    assert_int_equal(
        xf_sigv4_sign(
            fx->signer, v->has_token ? fx->session : fx->creds, &b.req, &auth, &signature, &err),
        XF_OK);
    if (v->canonical_sha != NULL) {
        assert_int_equal(xf_sigv4_sha256(fx->signer, xf_buf_view(&canonical), sha, &err), XF_OK);
        if (strcmp(sha, v->canonical_sha) != 0) {
            fail_msg("%s: canonical request is\n%s", v->name, canonical.ptr);
        }
    }
    if (strcmp(signature.signature, v->signature) != 0) {
        fail_msg(
            "%s: signature %s, canonical request\n%s", v->name, signature.signature, canonical.ptr);
    }
    assert_non_null(strstr(auth.ptr, "AWS4-HMAC-SHA256 Credential=" ACCESS "/20130524/"));
    assert_null(strstr(auth.ptr, SECRET));
}

static void known_answers(void **state)
{
    for (size_t i = 0; i < XF_ARRAY_LEN(vectors); i++) {
        check(*state, &vectors[i]);
    }
}

static void known_answers_from_a_warm_key_cache(void **state)
{
    for (int round = 0; round < 3; round++) {
        for (size_t i = XF_ARRAY_LEN(vectors); i > 0; i--) {
            check(*state, &vectors[i - 1]);
        }
    }
}

static void odd_keys_are_encoded_once_and_never_normalised(void **state)
{
    struct xf_uri_endpoint ep;
    struct xf_err err;

    assert_int_equal(xf_uri_endpoint_parse(XF_STR_LIT("https://s3.amazonaws.com"), &ep, &err),
                     XF_OK);
    for (size_t i = 0; i < XF_ARRAY_LEN(odd_keys); i++) {
        XF_AUTO_BUF path = {0};
        struct vector v = {.name = odd_keys[i].key,
                           .method = "GET",
                           .path = odd_keys[i].path,
                           .signature = odd_keys[i].signature};

        xf_uri_path(&path, &ep, false, XF_STR_LIT("examplebucket"), xf_str_c(odd_keys[i].key));
        assert_string_equal(path.ptr, odd_keys[i].path);
        check(*state, &v);
    }
}

static void order_of_headers_and_parameters_does_not_matter(void **state)
{
    struct fx *fx = *state;
    const struct vector *v = &vectors[6]; /* B1 */
    struct built b;
    struct xf_err err;
    struct xf_sigv4_extra signature = {0};
    XF_AUTO_BUF auth = {0};

    build(fx, v, &b);
    for (size_t i = 0; i < b.req.n_headers / 2; i++) {
        struct xf_sigv4_pair keep = b.headers[i];

        b.headers[i] = b.headers[b.req.n_headers - 1 - i];
        b.headers[b.req.n_headers - 1 - i] = keep;
    }
    for (size_t i = 0; i < b.req.n_query / 2; i++) {
        struct xf_sigv4_pair keep = b.query[i];

        b.query[i] = b.query[b.req.n_query - 1 - i];
        b.query[b.req.n_query - 1 - i] = keep;
    }
    assert_int_equal(xf_sigv4_sign(fx->signer, fx->creds, &b.req, &auth, &signature, &err), XF_OK);
    assert_string_equal(signature.signature, v->signature);
}

static void presigned(struct fx *fx,
                      const char *path,
                      const struct xf_creds *creds,
                      unsigned expires_s,
                      const char *signature)
{
    struct xf_sigv4_pair host = {XF_STR_LIT("host"), XF_STR_LIT(HOST)};
    struct xf_sigv4_req req = {
        .method = XF_STR_LIT("GET"),
        .path = xf_str_c(path),
        .headers = &host,
        .n_headers = 1,
        .region = XF_STR_LIT("us-east-1"),
        .service = XF_STR_LIT("s3"),
        .date = "20130524T000000Z",
    };
    struct xf_err err;
    XF_AUTO_BUF query = {0};

    assert_int_equal(xf_sigv4_presign(fx->signer, creds, &req, expires_s, &query, &err), XF_OK);
    assert_true(xf_str_ends(xf_buf_view(&query), xf_str_c(signature)));
}

static void presigned_urls(void **state)
{
    struct fx *fx = *state;

    presigned(fx,
              "/test.txt",
              fx->creds,
              86400, /* P5 */
              "&X-Amz-Signature=aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404");
    presigned(fx,
              "/a%20b",
              fx->session,
              900, /* B16 */
              "&X-Amz-Signature=b734b995373d598cdd69827c3b5fff6329b1c2a0cc5eba3b93507e8508b76ef2");
}

static void presigned_urls_live_a_week_at_most(void **state)
{
    struct fx *fx = *state;
    struct xf_sigv4_req req = {.method = XF_STR_LIT("GET"),
                               .path = XF_STR_LIT("/"),
                               .region = XF_STR_LIT("us-east-1"),
                               .service = XF_STR_LIT("s3"),
                               .date = "20130524T000000Z"};
    struct xf_err err;
    XF_AUTO_BUF query = {0};

    assert_int_equal(xf_sigv4_presign(fx->signer, fx->creds, &req, 604801, &query, &err),
                     XF_E_INVAL);
    assert_int_equal(xf_sigv4_presign(fx->signer, fx->creds, &req, 0, &query, &err), XF_E_INVAL);
    assert_int_equal(xf_sigv4_presign(fx->signer, fx->creds, &req, 604800, &query, &err), XF_OK);
}

static void chunk(struct fx *fx, struct xf_sigv4_chunks *chunks, size_t len, const char *signature)
{
    static char data[65536];
    struct xf_err err;
    XF_AUTO_BUF out = {0};

    memset(data, 'a', sizeof(data));
    assert_int_equal(xf_sigv4_chunk(chunks, fx->signer, (struct xf_str){data, len}, &out, &err),
                     XF_OK);
    assert_non_null(strstr(out.ptr, signature));
    assert_true(xf_str_ends(xf_buf_view(&out), XF_STR_LIT("\r\n")));
}

static void signed_chunks(void **state)
{
    struct fx *fx = *state;
    struct xf_sigv4_chunks chunks;
    struct built b;
    struct xf_err err;
    char trailer[XF_SIGV4_HEX_LEN + 1];

    build(fx, &vectors[4], &b); /* P6 */
    assert_int_equal(
        xf_sigv4_chunks_init(&chunks, fx->signer, fx->creds, &b.req, vectors[4].signature, &err),
        XF_OK);
    chunk(fx,
          &chunks,
          65536,
          "10000;chunk-signature=ad80c730a21e5b8d04586a2213dd63b9a0e99e0e2307b0ade35a65485a288648");
    chunk(fx,
          &chunks,
          1024,
          "400;chunk-signature=0055627c9e194cb4542bae2aa5492e3c1575bbb81b612b7d234b86a503ef5497");
    chunk(fx,
          &chunks,
          0,
          "0;chunk-signature=b6c6ea8a5354eaf15b3cb7646744f4275b71ea724fed81ceb9323e279d449df9");
    xf_sigv4_chunks_fini(&chunks);

    build(fx, &vectors[5], &b); /* P7 */
    assert_int_equal(
        xf_sigv4_chunks_init(&chunks, fx->signer, fx->creds, &b.req, vectors[5].signature, &err),
        XF_OK);
    chunk(fx, &chunks, 65536, "b474d8862b1487a5145d686f57f013e54db672cee1c953b3010fb58501ef5aa2");
    chunk(fx, &chunks, 1024, "1c1344b170168f8e65b41376b44b20fe354e373826ccbbe2c1d40a8cae51e5c7");
    chunk(fx, &chunks, 0, "2ca2aba2005185cf7159c6277faf83795951dd77a3a99e6e65d5c9f85863f992");
    assert_int_equal(
        xf_sigv4_trailer(
            &chunks, fx->signer, XF_STR_LIT("x-amz-checksum-crc32c:sOO8/Q==\n"), trailer, &err),
        XF_OK);
    assert_string_equal(trailer,
                        "d81f82fc3505edab99d459891051a732e8730629a2e4a59689829ca17fe2e435");
    xf_sigv4_chunks_fini(&chunks);
}

static void chunked_size_counts_every_frame(void **state)
{
    (void)state;
    assert_int_equal(xf_sigv4_chunked_size(66560, 65536), 66824);
    assert_int_equal(xf_sigv4_chunked_size(0, 65536), 1 + 17 + 64 + 4);
    assert_int_equal(xf_sigv4_chunked_size(65536, 65536), 5 + 17 + 64 + 4 + 65536 + 86);
}

static void a_new_day_or_region_gets_its_own_key(void **state)
{
    struct fx *fx = *state;
    struct built b;
    struct xf_err err;
    struct xf_sigv4_extra first = {0};
    struct xf_sigv4_extra other = {0};
    XF_AUTO_BUF auth = {0};

    build(fx, &vectors[0], &b);
    assert_int_equal(xf_sigv4_sign(fx->signer, fx->creds, &b.req, &auth, &first, &err), XF_OK);
    b.req.region = XF_STR_LIT("us-west-2");
    assert_int_equal(xf_sigv4_sign(fx->signer, fx->creds, &b.req, &auth, &other, &err), XF_OK);
    assert_string_not_equal(first.signature, other.signature);
    b.req.region = XF_STR_LIT("us-east-1");
    memcpy(b.req.date, "20130525T000000Z", sizeof(b.req.date));
    assert_int_equal(xf_sigv4_sign(fx->signer, fx->creds, &b.req, &auth, &other, &err), XF_OK);
    assert_string_not_equal(first.signature, other.signature);
    assert_non_null(strstr(auth.ptr, "/20130525/us-east-1/s3/aws4_request"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_answers),
        cmocka_unit_test(known_answers_from_a_warm_key_cache),
        cmocka_unit_test(odd_keys_are_encoded_once_and_never_normalised),
        cmocka_unit_test(order_of_headers_and_parameters_does_not_matter),
        cmocka_unit_test(presigned_urls),
        cmocka_unit_test(presigned_urls_live_a_week_at_most),
        cmocka_unit_test(signed_chunks),
        cmocka_unit_test(chunked_size_counts_every_frame),
        cmocka_unit_test(a_new_day_or_region_gets_its_own_key),
    };

    return xf_test_run("s3/sigv4", tests, setup, teardown);
}
