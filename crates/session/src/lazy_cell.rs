//! Lazy cells: values that are made on first use.

use std::sync::{Arc, Mutex, PoisonError};

/// Cell that makes its value on first use and then keeps it. After an error, the next use tries again.
#[derive(Debug)]
pub struct LazyCell<T>(Mutex<Option<Arc<T>>>);

impl<T> Default for LazyCell<T> {
    fn default() -> LazyCell<T> {
        LazyCell::new()
    }
}

impl<T> LazyCell<T> {
    /// Creates an empty cell.
    pub const fn new() -> LazyCell<T> {
        LazyCell(Mutex::new(None))
    }

    /// Returns the value if it is already made and no other thread is using the cell.
    pub fn get_if_made(&self) -> Option<Arc<T>> {
        self.0.try_lock().ok()?.clone()
    }

    /// Returns the value. Makes the value first if necessary. If another caller is making it, this call
    /// waits.
    ///
    /// # Errors
    /// Returns the error of `make`.
    pub fn get<E>(&self, make: impl FnOnce() -> Result<T, E>) -> Result<Arc<T>, E> {
        let mut value = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(value) = &*value {
            return Ok(Arc::clone(value));
        }
        Ok(Arc::clone(value.insert(Arc::new(make()?))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_made_once_and_failures_are_not_kept() {
        let lazy_cell = LazyCell::new();
        assert_eq!(lazy_cell.get(|| Err("no")), Err("no"));
        assert_eq!(lazy_cell.get_if_made(), None);
        assert_eq!(lazy_cell.get(|| Ok::<_, &str>(1)).map(|made| *made), Ok(1));
        assert_eq!(lazy_cell.get(|| Err("no")).map(|made| *made), Ok(1));
        assert_eq!(lazy_cell.get_if_made().as_deref(), Some(&1));
    }
}
