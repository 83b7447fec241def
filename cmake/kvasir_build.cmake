# How every target of the project is compiled, and the two ways to declare one: a room and a test program.

set(CMAKE_CXX_STANDARD 23)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)

find_program(KVASIR_CCACHE ccache)
if(KVASIR_CCACHE)
  # Another clone of the same sources finds what this one has compiled.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1
      ${KVASIR_CCACHE})
endif()

find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)

add_library(kvasir_options INTERFACE)
target_compile_features(kvasir_options INTERFACE cxx_std_23)
target_include_directories(kvasir_options INTERFACE ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
target_link_libraries(kvasir_options INTERFACE Threads::Threads)
if(PROJECT_IS_TOP_LEVEL)
  set(KVASIR_AS_PART -Werror)
else()
  # As part of a build that names no type, or that is there to debug something else, it would compute twenty times as
  # slowly; and a warning of a compiler that is newer than it must not end another project's build.
  set(KVASIR_AS_PART $<$<OR:$<STREQUAL:$<CONFIG>,>,$<CONFIG:Debug>>:-O2>)
endif()
target_compile_options(kvasir_options INTERFACE
  -Wall -Wextra -Wno-missing-field-initializers -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual ${KVASIR_AS_PART}
  # The same bits (P2): a multiply and an add are fused where the source says so and nowhere else.
  -ffp-contract=off -fno-fast-math -fno-math-errno)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # GCC 12 warns of overlaps inside std::string's operator+ that cannot happen (GCC bug 105651), and of the member of a
  # std::expected that is not the active one. Clang's own check of uninitialized reads stays on in `./dev lint`.
  target_compile_options(kvasir_options INTERFACE -Wno-restrict -Wno-maybe-uninitialized)
endif()
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  target_compile_options(kvasir_options INTERFACE -Wthread-safety)
endif()
if(KVASIR_SANITIZE)
  target_compile_options(kvasir_options INTERFACE
    -fsanitize=${KVASIR_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(kvasir_options INTERFACE -fsanitize=${KVASIR_SANITIZE})
endif()
if(KVASIR_SANITIZE STREQUAL "thread")
  # Its runtime as a shared library, so that the operator new of tests that make memory fail comes before its own.
  execute_process(COMMAND ${CMAKE_CXX_COMPILER} -print-file-name=libclang_rt.tsan-${CMAKE_SYSTEM_PROCESSOR}.so
                  OUTPUT_VARIABLE KVASIR_TSAN_RUNTIME OUTPUT_STRIP_TRAILING_WHITESPACE)
  cmake_path(GET KVASIR_TSAN_RUNTIME PARENT_PATH KVASIR_TSAN_DIRECTORY)
  target_link_options(kvasir_options INTERFACE -shared-libsan -Wl,-rpath,${KVASIR_TSAN_DIRECTORY})
endif()
if(KVASIR_FUZZ)
  target_compile_options(kvasir_options INTERFACE -fsanitize=fuzzer-no-link)
endif()

# kvasir_room(NAME SOURCES a.cc ... ROOMS lower ... LINK libraries ...): the library kvasir_NAME. ROOMS is the room's
# one-way link line; tools/check_rooms.py holds the includes to it. KVASIR_ROOMS and KVASIR_LIBRARIES gather what an
# installed library is made of.
function(kvasir_room name)
  cmake_parse_arguments(ARG "" "" "SOURCES;ROOMS;LINK" ${ARGN})
  add_library(kvasir_${name} STATIC ${ARG_SOURCES})
  target_link_libraries(kvasir_${name} PUBLIC kvasir_options)
  foreach(room IN LISTS ARG_ROOMS)
    target_link_libraries(kvasir_${name} PUBLIC kvasir_${room})
  endforeach()
  target_link_libraries(kvasir_${name} PUBLIC ${ARG_LINK})
  set_property(GLOBAL APPEND PROPERTY KVASIR_ROOMS ${name})
  set_property(GLOBAL APPEND PROPERTY KVASIR_LIBRARIES ${ARG_LINK})
endfunction()

# kvasir_test(ROOM SOURCES a_test.cc ... [ROOMS more ...] [LABEL label]): the program ROOM_test. All its cases are one
# ctest entry each.
function(kvasir_test room)
  cmake_parse_arguments(ARG "" "TIMEOUT" "SOURCES;ROOMS;LINK" ${ARGN})
  add_executable(${room}_test ${ARG_SOURCES})
  target_link_libraries(${room}_test PRIVATE kvasir_${room} kvasir_test_support GTest::gtest_main)
  foreach(other IN LISTS ARG_ROOMS)
    target_link_libraries(${room}_test PRIVATE kvasir_${other})
  endforeach()
  target_link_libraries(${room}_test PRIVATE ${ARG_LINK})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 300)
  endif()
  if(KVASIR_SANITIZE)
    math(EXPR ARG_TIMEOUT "${ARG_TIMEOUT} * 10")
  endif()
  gtest_discover_tests(${room}_test DISCOVERY_TIMEOUT 60 PROPERTIES TIMEOUT ${ARG_TIMEOUT})
endfunction()

# kvasir_fuzzer(NAME SOURCE file ROOM room): the libFuzzer program NAME_fuzz in a fuzz build; in every build the same
# entry point is linked with a replayer that runs the committed corpus tests/fuzz/corpus/NAME as a test.
function(kvasir_fuzzer name)
  cmake_parse_arguments(ARG "" "SOURCE" "ROOMS" ${ARGN})
  if(KVASIR_FUZZ)
    add_executable(${name}_fuzz ${ARG_SOURCE})
    target_link_options(${name}_fuzz PRIVATE -fsanitize=fuzzer)
  else()
    add_executable(${name}_fuzz ${ARG_SOURCE} ${PROJECT_SOURCE_DIR}/tests/fuzz/replay.cc)
    add_test(NAME fuzz_corpus_${name}
             COMMAND ${name}_fuzz ${PROJECT_SOURCE_DIR}/tests/fuzz/corpus/${name})
    set_tests_properties(fuzz_corpus_${name} PROPERTIES TIMEOUT 300)
  endif()
  target_link_libraries(${name}_fuzz PRIVATE kvasir_options)
  foreach(room IN LISTS ARG_ROOMS)
    target_link_libraries(${name}_fuzz PRIVATE kvasir_${room})
  endforeach()
endfunction()
