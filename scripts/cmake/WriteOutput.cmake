# cmake -DPROGRAM=tangram "-DARGUMENTS=completion|bash" -DOUTPUT=FILE -P WriteOutput.cmake: what a program prints becomes a
# file.
string(REPLACE "|" ";" ARGUMENTS "${ARGUMENTS}")
execute_process(COMMAND "${PROGRAM}" ${ARGUMENTS} OUTPUT_FILE "${OUTPUT}" COMMAND_ERROR_IS_FATAL ANY)
