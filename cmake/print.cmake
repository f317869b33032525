# cmake -P print.cmake FILE PROGRAM OPTION: writes what the program says to FILE.
get_filename_component(folder ${CMAKE_ARGV3} DIRECTORY)
file(MAKE_DIRECTORY ${folder})
execute_process(COMMAND ${CMAKE_ARGV4} ${CMAKE_ARGV5} OUTPUT_FILE ${CMAKE_ARGV3} COMMAND_ERROR_IS_FATAL ANY)
