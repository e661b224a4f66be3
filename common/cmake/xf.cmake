# xf.cmake - compiler flags, third-party libraries, and the functions that declare everything built here.
#
#   xf_library(NAME SOURCES a.c b.c [LIBS ...])
#       one static library of a folder.
#   xf_program(NAME SOURCES main.c [LIBS ...])
#       a program, lands in build/<preset>/bin/.
#   xf_test(NAME SOURCES x_test.c [LIBS ...] [LABELS unit] [TIMEOUT 60] [SERIAL] [ARGS ...] [ENVIRONMENT A=1 ...])
#       a cmocka program and its ctest entry; tests/lib and cmocka are linked by themselves. Run in build/<preset>/test/.
#       TIMEOUT in seconds, three times that under sanitizers. SERIAL: no other test runs beside it.
#   xf_test_script(NAME x.sh LABELS integration [TIMEOUT 60] [SERIAL] [ARGS ...] [ENVIRONMENT ...])
#       the same for a bash script of the current folder. Tests find XF_SOURCE_DIR and XF_BIN_DIR in the environment.
#   xf_test_python(NAME x.py LABELS integration [TIMEOUT 60] [SERIAL] [ARGS ...] [ENVIRONMENT ...])
#       the same for a script of Debian's Python (python3-boto3 is needed).
#   xf_fuzz(NAME SOURCES x_fuzz.c [LIBS ...] [CORPUS dir])
#       defines LLVMFuzzerTestOneInput. In the fuzz preset it is a libFuzzer program; everywhere else it replays
#       its corpus (default: tests/fuzz/corpus/NAME) as a ctest entry of label fuzz.
#
# Third-party libraries are named dep::X in LIBS (curl crypto ssl xml2 nng msgpack sqlite3 zstd jansson microhttpd
# systemd zlib cmocka); their headers are system headers, so our warnings do not apply to them.

include_guard(GLOBAL)
include(CheckPIESupported)

option(XF_WERROR "warnings are errors" ON)
option(XF_HARDEN "hardening flags of a release" OFF)
option(XF_FUZZ "build fuzz targets with libFuzzer" OFF)
set(XF_SANITIZE "" CACHE STRING "sanitizers, such as address,undefined")

# ---- compiler ----------------------------------------------------------------------------------------------------

set(CMAKE_C_STANDARD 17)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_C_FLAGS_DEBUG "-O1 -g")
set(CMAKE_C_FLAGS_RELWITHDEBINFO "-O2 -g")
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin")
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
check_pie_supported(LANGUAGES C)

# Every path is made relative to the source folder, so that several checkouts share one cache.
find_program(XF_CCACHE ccache)
if(XF_CCACHE AND NOT CMAKE_C_COMPILER_LAUNCHER)
    set(CMAKE_C_COMPILER_LAUNCHER
        "${CMAKE_COMMAND};-E;env;CCACHE_BASEDIR=${CMAKE_SOURCE_DIR};CCACHE_NOHASHDIR=1;${XF_CCACHE}")
endif()

add_library(xf_flags INTERFACE)
target_compile_definitions(xf_flags INTERFACE _GNU_SOURCE XF_VERSION="${PROJECT_VERSION}")
target_include_directories(xf_flags INTERFACE "${CMAKE_SOURCE_DIR}")
target_compile_options(xf_flags INTERFACE
    -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wstrict-prototypes -Wmissing-prototypes
    -Wvla -Wformat=2 -Wundef -Wswitch-enum -Wcast-qual -Wwrite-strings -fno-common)
if(CMAKE_C_COMPILER_ID STREQUAL "Clang")
    target_compile_options(xf_flags INTERFACE -Wno-string-conversion) # XF_ASSERT(!"why this is never reached")
endif()
if(XF_WERROR)
    target_compile_options(xf_flags INTERFACE -Werror)
endif()
find_package(Threads REQUIRED)
target_link_libraries(xf_flags INTERFACE Threads::Threads)

if(XF_SANITIZE)
    set(san -fsanitize=${XF_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
    target_compile_options(xf_flags INTERFACE ${san})
    target_link_options(xf_flags INTERFACE ${san})
endif()
if(XF_FUZZ)
    if(NOT CMAKE_C_COMPILER_ID STREQUAL "Clang")
        message(FATAL_ERROR "the fuzz preset needs clang (Debian package clang-14)")
    endif()
    target_compile_options(xf_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()
if(XF_HARDEN)
    target_compile_options(xf_flags INTERFACE -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3
        -fstack-protector-strong -fstack-clash-protection -fcf-protection)
    target_link_options(xf_flags INTERFACE -Wl,-z,relro -Wl,-z,now -Wl,-z,noexecstack -Wl,--as-needed)
endif()

# ---- third-party libraries ---------------------------------------------------------------------------------------

# Stops with the name of the Debian package when `found` is false.
function(xf_need found what package)
    if(NOT found)
        message(FATAL_ERROR "${what} is missing: install the Debian package ${package} "
            "(sudo apt-get install ${package}), or run ./dev setup, which installs everything.")
    endif()
endfunction()

# An interface library dep::<name> over an imported target.
function(xf_dep name)
    add_library(xf_dep_${name} INTERFACE)
    target_link_libraries(xf_dep_${name} INTERFACE ${ARGN})
    add_library(dep::${name} ALIAS xf_dep_${name})
endfunction()

function(xf_dep_pkgconfig name module package)
    pkg_check_modules(XF_${module} QUIET IMPORTED_TARGET ${module})
    xf_need("${XF_${module}_FOUND}" "${module}" ${package})
    xf_dep(${name} PkgConfig::XF_${module})
endfunction()

find_package(PkgConfig QUIET)
xf_need("${PKG_CONFIG_FOUND}" "pkg-config" pkg-config)

find_package(CURL QUIET)
xf_need("${CURL_FOUND}" "libcurl" libcurl4-openssl-dev)
xf_dep(curl CURL::libcurl)
find_package(OpenSSL QUIET)
xf_need("${OPENSSL_FOUND}" "OpenSSL" libssl-dev)
xf_dep(crypto OpenSSL::Crypto)
xf_dep(ssl OpenSSL::SSL)
find_package(LibXml2 QUIET)
xf_need("${LIBXML2_FOUND}" "libxml2" libxml2-dev)
xf_dep(xml2 LibXml2::LibXml2)
find_package(nng CONFIG QUIET)
xf_need("${nng_FOUND}" "nng" libnng-dev)
xf_dep(nng nng::nng)
find_package(msgpack CONFIG QUIET)
xf_need("${msgpack_FOUND}" "msgpack" libmsgpack-dev)
xf_dep(msgpack msgpackc)
find_package(SQLite3 QUIET)
xf_need("${SQLite3_FOUND}" "SQLite" libsqlite3-dev)
xf_dep(sqlite3 SQLite::SQLite3)
find_package(ZLIB QUIET)
xf_need("${ZLIB_FOUND}" "zlib" zlib1g-dev)
xf_dep(zlib ZLIB::ZLIB)
xf_dep_pkgconfig(zstd libzstd libzstd-dev)
xf_dep_pkgconfig(jansson jansson libjansson-dev)
xf_dep_pkgconfig(microhttpd libmicrohttpd libmicrohttpd-dev)
xf_dep_pkgconfig(systemd libsystemd libsystemd-dev)
xf_dep_pkgconfig(cmocka cmocka libcmocka-dev)

# ---- what the folders call ---------------------------------------------------------------------------------------

function(xf_library name)
    cmake_parse_arguments(PARSE_ARGV 1 A "" "" "SOURCES;LIBS")
    xf_check_args(${name} "${A_UNPARSED_ARGUMENTS}" "${A_SOURCES}")
    add_library(${name} STATIC ${A_SOURCES})
    target_link_libraries(${name} PUBLIC xf_flags ${A_LIBS})
endfunction()

function(xf_program name)
    cmake_parse_arguments(PARSE_ARGV 1 A "" "" "SOURCES;LIBS")
    xf_check_args(${name} "${A_UNPARSED_ARGUMENTS}" "${A_SOURCES}")
    add_executable(${name} ${A_SOURCES})
    target_link_libraries(${name} PRIVATE xf_flags ${A_LIBS})
endfunction()

function(xf_test name)
    cmake_parse_arguments(PARSE_ARGV 1 A "SERIAL" "TIMEOUT" "SOURCES;LIBS;LABELS;ARGS;ENVIRONMENT")
    xf_check_args(${name} "${A_UNPARSED_ARGUMENTS}" "${A_SOURCES}")
    if(NOT A_LABELS)
        set(A_LABELS unit)
    endif()
    add_executable(${name} ${A_SOURCES})
    target_link_libraries(${name} PRIVATE ${A_LIBS} xf_testlib xf_flags)
    set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/test")
    add_test(NAME ${name} COMMAND ${name} ${A_ARGS} WORKING_DIRECTORY "${CMAKE_BINARY_DIR}/test")
    xf_test_properties(${name} "${A_TIMEOUT}" "${A_LABELS}" "${A_SERIAL}" "${A_ENVIRONMENT}")
endfunction()

function(xf_test_script name script)
    cmake_parse_arguments(PARSE_ARGV 2 A "SERIAL" "TIMEOUT" "LABELS;ARGS;ENVIRONMENT")
    xf_check_args(${name} "${A_UNPARSED_ARGUMENTS}" "${A_LABELS}")
    add_test(NAME ${name} COMMAND bash "${CMAKE_CURRENT_SOURCE_DIR}/${script}" ${A_ARGS})
    xf_test_properties(${name} "${A_TIMEOUT}" "${A_LABELS}" "${A_SERIAL}" "${A_ENVIRONMENT}")
endfunction()

function(xf_test_python name script)
    cmake_parse_arguments(PARSE_ARGV 2 A "SERIAL" "TIMEOUT" "LABELS;ARGS;ENVIRONMENT")
    xf_check_args(${name} "${A_UNPARSED_ARGUMENTS}" "${A_LABELS}")
    add_test(NAME ${name} COMMAND /usr/bin/python3 -B "${CMAKE_CURRENT_SOURCE_DIR}/${script}" ${A_ARGS})
    xf_test_properties(${name} "${A_TIMEOUT}" "${A_LABELS}" "${A_SERIAL}" "${A_ENVIRONMENT}")
endfunction()

function(xf_fuzz name)
    cmake_parse_arguments(PARSE_ARGV 1 A "" "CORPUS" "SOURCES;LIBS")
    xf_check_args(${name} "${A_UNPARSED_ARGUMENTS}" "${A_SOURCES}")
    if(NOT A_CORPUS)
        set(A_CORPUS "${CMAKE_SOURCE_DIR}/tests/fuzz/corpus/${name}")
    endif()
    add_executable(${name} ${A_SOURCES})
    target_link_libraries(${name} PRIVATE ${A_LIBS} xf_flags)
    set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/fuzz")
    if(XF_FUZZ)
        target_link_options(${name} PRIVATE -fsanitize=fuzzer)
        add_test(NAME ${name} COMMAND ${name} -runs=0 "${A_CORPUS}")
    else()
        target_sources(${name} PRIVATE "${CMAKE_SOURCE_DIR}/tests/lib/fuzz_replay.c")
        add_test(NAME ${name} COMMAND ${name} "${A_CORPUS}")
    endif()
    xf_test_properties(${name} 120 fuzz OFF "")
    set_property(GLOBAL APPEND PROPERTY XF_FUZZ_TARGETS "${name}|${A_CORPUS}")
endfunction()

function(xf_test_properties name timeout labels serial environment)
    if(NOT timeout)
        set(timeout 60)
    endif()
    if(XF_SANITIZE)
        math(EXPR timeout "3 * ${timeout}")
    endif()
    set(env "XF_SOURCE_DIR=${CMAKE_SOURCE_DIR}" "XF_BIN_DIR=${CMAKE_BINARY_DIR}/bin" ${environment})
    if(XF_SANITIZE MATCHES "address")
        list(APPEND env "LSAN_OPTIONS=suppressions=${CMAKE_SOURCE_DIR}/tests/lsan.supp:print_suppressions=0")
        list(APPEND env "ASAN_OPTIONS=detect_leaks=1:strict_string_checks=1:detect_stack_use_after_return=1")
    endif()
    if(XF_SANITIZE MATCHES "undefined")
        list(APPEND env "UBSAN_OPTIONS=print_stacktrace=1")
    endif()
    if(XF_SANITIZE MATCHES "thread")
        list(APPEND env "TSAN_OPTIONS=suppressions=${CMAKE_SOURCE_DIR}/tests/tsan.supp:halt_on_error=1")
    endif()
    set_tests_properties(${name} PROPERTIES TIMEOUT ${timeout} LABELS "${labels}" ENVIRONMENT "${env}"
        RUN_SERIAL ${serial})
endfunction()

function(xf_check_args name unparsed required)
    if(unparsed)
        message(FATAL_ERROR "${name}: unknown arguments: ${unparsed}")
    endif()
    if(NOT required)
        message(FATAL_ERROR "${name}: no SOURCES (or LABELS of a script)")
    endif()
endfunction()

# add_subdirectory for each named folder that has a CMakeLists.txt.
function(xf_folders)
    foreach(folder IN LISTS ARGN)
        if(EXISTS "${CMAKE_CURRENT_SOURCE_DIR}/${folder}/CMakeLists.txt")
            add_subdirectory(${folder})
        endif()
    endforeach()
endfunction()
