"""The passes between the parsed program and code generation; `pipeline` has their list and order."""
