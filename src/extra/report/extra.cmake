# The page's template, compiled into the program: "0x3c,0x21,..", which report_page.c includes.
set(template ${PROJECT_SOURCE_DIR}/src/extra/report/report.html)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${template})
file(READ ${template} bytes HEX)
string(REGEX REPLACE "(..)" "0x\\1,\n" bytes "${bytes}")
file(CONFIGURE OUTPUT extra/report/report.html.inc CONTENT "@bytes@" @ONLY)
set_source_files_properties(${PROJECT_SOURCE_DIR}/src/extra/report/report_page.c PROPERTIES
  INCLUDE_DIRECTORIES ${PROJECT_BINARY_DIR})

tnet_extra(report DEPS train KITS train/resultkit ROWS "train/report/eval_pages.def: TN_EVAL_PAGE(html)")
