# Several processes: src/cluster, which a run knows by its row in src/train/group/groups.def alone. Without it a run is one process.
option(TNET_CLUSTER "several processes that train one model, over libzmq: src/cluster" ON)

if(TNET_CLUSTER)
  pkg_check_modules(ZMQ libzmq>=4.3.3)
  if(NOT ZMQ_FOUND)
    message(FATAL_ERROR "libzmq 4.3.3 or newer is needed (Debian: libzmq3-dev): before it strangers can run code in a "
      "listening process or stall it (CVE-2019-6250, CVE-2019-13132, CVE-2020-15166); -DTNET_CLUSTER=OFF builds without it")
  endif()
  tnet_module(cluster DEPS train metrics models ps io nn config base)
  # Headers only: src/cluster/security/zmqcalls.c loads the library where there are peers.
  target_include_directories(tnet_cluster SYSTEM PUBLIC ${ZMQ_INCLUDEDIR})
  target_compile_options(tnet_cluster PRIVATE -fno-math-errno)
  set_source_files_properties(${PROJECT_SOURCE_DIR}/src/cluster/launch/children.c
    PROPERTIES COMPILE_DEFINITIONS TN_TRUSTED) # a child that cannot become a program ends itself
  set_property(GLOBAL APPEND PROPERTY "rows of train/group/groups.def" "TN_GROUP(cluster)")
  target_link_libraries(tnet_train PUBLIC tnet_cluster) # by that row
endif()

# Takes out of these lists the sources that include from src/cluster, in a tree without it.
function(tnet_without_cluster)
  foreach(list ${ARGN})
    foreach(source ${${list}})
      file(STRINGS ${source} uses REGEX "^#include \"(cluster/|scale\\.h)")
      if(uses AND NOT TNET_CLUSTER)
        list(REMOVE_ITEM ${list} ${source})
      endif()
    endforeach()
    set(${list} ${${list}} PARENT_SCOPE)
  endforeach()
endfunction()
