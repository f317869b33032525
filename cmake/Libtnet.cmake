# libtnet: what serving programs link. Only the functions of src/serve/tnet.h are visible, whatever else is inside.
#
#   tnet          libtnet.so
#   tnet_archive  libtnet.a: one object of everything that is needed, its other symbols made local
set(tnet_map ${PROJECT_SOURCE_DIR}/cmake/libtnet.map)
add_library(tnet SHARED ${PROJECT_SOURCE_DIR}/src/serve/tnet.c)
target_link_libraries(tnet PRIVATE tnet_serve tnet_warnings)
target_link_options(tnet PRIVATE -Wl,--version-script=${tnet_map} -Wl,--gc-sections)
if(NOT TNET_SANITIZE) # clang leaves the sanitizer's functions to the program
  target_link_options(tnet PRIVATE -Wl,-z,defs)
endif()
set_target_properties(tnet PROPERTIES LINK_DEPENDS ${tnet_map}) # cmake/Install.cmake says where it is installed

# Instrumented objects want their runtime at every link; the archive is for releases and plain test builds.
if(NOT TNET_SANITIZE AND NOT TNET_COVERAGE)
  add_library(tnet_core OBJECT ${PROJECT_SOURCE_DIR}/src/serve/tnet.c)
  target_link_libraries(tnet_core PRIVATE tnet_serve tnet_warnings)
  set(archive ${CMAKE_BINARY_DIR}/libtnet.a)
  set(rooms $<TARGET_FILE:tnet_serve> $<TARGET_FILE:tnet_metrics> $<TARGET_FILE:tnet_io> $<TARGET_FILE:tnet_nn>
    $<TARGET_FILE:tnet_dict>     $<TARGET_FILE:tnet_config> $<TARGET_FILE:tnet_base>)
  set(extras "")
  foreach(room serve metrics io nn dict config base)
    get_property(more GLOBAL PROPERTY "extras of ${room}")
    list(APPEND extras ${more})
  endforeach()
  list(REMOVE_DUPLICATES extras)
  foreach(extra ${extras})
    list(APPEND rooms $<TARGET_FILE:${extra}>)
  endforeach()
  add_custom_command(OUTPUT ${archive}
    COMMAND ld -r -o tnet_whole.o $<TARGET_OBJECTS:tnet_core> --start-group ${rooms} --end-group
    COMMAND objcopy --wildcard "--keep-global-symbol=tnet_*" tnet_whole.o
    COMMAND ${CMAKE_COMMAND} -E rm -f ${archive}
    COMMAND ${CMAKE_AR} rcs ${archive} tnet_whole.o
    DEPENDS $<TARGET_OBJECTS:tnet_core> tnet_core tnet_serve tnet_metrics tnet_io tnet_nn tnet_dict tnet_config tnet_base ${extras}
    COMMAND_EXPAND_LISTS VERBATIM)
  add_custom_target(tnet_archive ALL DEPENDS ${archive})
endif()

# libtnet-train: what programs that train link; the functions of src/api/tnet_train.h.
file(GLOB api CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/api/*.c)
set(train_map ${PROJECT_SOURCE_DIR}/cmake/libtnet-train.map)
add_library(tnet_training SHARED ${api})
target_include_directories(tnet_training PRIVATE ${PROJECT_SOURCE_DIR}/src/serve)
target_link_libraries(tnet_training PRIVATE tnet_train tnet_warnings)
target_link_options(tnet_training PRIVATE -Wl,--version-script=${train_map} -Wl,--gc-sections)
if(NOT TNET_SANITIZE)
  target_link_options(tnet_training PRIVATE -Wl,-z,defs)
endif()
set_target_properties(tnet_training PROPERTIES OUTPUT_NAME tnet-train LINK_DEPENDS ${train_map})
