//! What a module is called.

/// File name of an image: of its path, or else the one it was linked with.
pub(crate) fn module_name<'i>(path: Option<&'i str>, original: Option<&'i str>) -> Option<&'i str> {
    path.or(original).map(file_name)
}

/// The last part of a path of Windows.
pub(crate) fn file_name(path: &str) -> &str {
    path.rsplit(['\\', '/']).next().unwrap_or(path)
}
