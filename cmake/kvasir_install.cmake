# What `cmake --install` puts in place: one archive of all rooms of the library, the public headers, and the files that
# find_package(kvasir) reads. A program that finds them links kvasir::kvasir, as it does after add_subdirectory().
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# What the rooms link, known here too; kvasir-config.cmake.in finds the same.
find_package(fmt REQUIRED)
find_package(hwy REQUIRED CONFIG)
pkg_check_modules(PCRE2 REQUIRED IMPORTED_TARGET libpcre2-8)
pkg_check_modules(UTF8PROC REQUIRED IMPORTED_TARGET libutf8proc)
pkg_check_modules(XXHASH REQUIRED IMPORTED_TARGET libxxhash)
pkg_check_modules(ZSTD REQUIRED IMPORTED_TARGET libzstd)

get_property(rooms GLOBAL PROPERTY KVASIR_ROOMS)
get_property(libraries GLOBAL PROPERTY KVASIR_LIBRARIES)
list(REMOVE_DUPLICATES libraries)
list(TRANSFORM rooms REPLACE "(.+)" "$<TARGET_OBJECTS:kvasir_\\1>" OUTPUT_VARIABLE objects)

add_library(kvasir_installed STATIC ${objects})
set_target_properties(kvasir_installed PROPERTIES OUTPUT_NAME kvasir EXPORT_NAME kvasir LINKER_LANGUAGE CXX)
target_compile_features(kvasir_installed INTERFACE cxx_std_23)
target_link_libraries(kvasir_installed PRIVATE Threads::Threads ${libraries})

set(config_folder ${CMAKE_INSTALL_LIBDIR}/cmake/kvasir)
install(TARGETS kvasir_installed EXPORT kvasir_targets COMPONENT library
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
        INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/kvasir DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT library)
install(EXPORT kvasir_targets NAMESPACE kvasir:: DESTINATION ${config_folder} COMPONENT library)

configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/kvasir-config.cmake.in
                              ${PROJECT_BINARY_DIR}/install/kvasir-config.cmake INSTALL_DESTINATION ${config_folder})
# Until 1.0 another minor version may have another API.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/install/kvasir-config-version.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/install/kvasir-config.cmake
              ${PROJECT_BINARY_DIR}/install/kvasir-config-version.cmake
        DESTINATION ${config_folder} COMPONENT library)
