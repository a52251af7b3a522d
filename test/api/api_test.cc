// The binary of the api/ unit tests; each unit has its own file.
