"""What on a machine and in an environment stands in the way: looked for, never changed."""
