"""The values that several providers take."""

BACKEND_TYPES = ["Ascend910B", "Ascend950"]
EXECUTION_MODES = ["sim", "device"]

def check_fields(provider_name, values, types):
    """Fails unless every value has its type.

    Args:
      provider_name: string; for the message.
      values: dict of field name to value.
      types: dict of field name to the name of a type, or to the list of the strings that the field may be.
    """
    for name, wanted in types.items():
        value = values[name]
        if type(wanted) == "list":
            if value not in wanted:
                fail("{}.{} is one of {}, got {}".format(provider_name, name, ", ".join(wanted), repr(value)))
        elif type(value) != wanted:
            fail("{}.{} is a {}, got a {}".format(provider_name, name, wanted, type(value)))
