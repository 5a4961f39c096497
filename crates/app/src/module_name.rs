//! What a module is called.

/// File name of an image: of its path, or else the one it was linked with.
pub(crate) fn module_name<'i>(path: Option<&'i str>, original: Option<&'i str>) -> Option<&'i str> {
    let path = path.or(original)?;
    Some(path.rsplit(['\\', '/']).next().unwrap_or(path))
}
