"""Policy files: text -> findings or a model -> the table that the preloaded library reads."""
