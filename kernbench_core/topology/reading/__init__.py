"""What the reader of specifications says of what does not fit, and how it reads kinds that plug-ins alone have."""
