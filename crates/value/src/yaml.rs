//! YAML text to the same tokens as JSON.
