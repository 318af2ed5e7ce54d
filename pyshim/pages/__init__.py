"""The pages that processes leave, read as files that anybody may have written."""
