//! What is made when it is first asked for.

use std::sync::{Arc, Mutex, PoisonError};

/// Something that is made when it is first asked for, once. If it cannot be made, the next who asks
/// tries again.
#[derive(Debug)]
pub(super) struct Lazily<T>(Mutex<Option<Arc<T>>>);

impl<T> Lazily<T> {
    pub(super) const fn new() -> Lazily<T> {
        Lazily(Mutex::new(None))
    }

    /// What it is, if it was made and is not being made.
    pub(super) fn known(&self) -> Option<Arc<T>> {
        self.0.try_lock().ok()?.clone()
    }

    /// What it is; whoever asks while it is being made waits for it.
    pub(super) fn get<E>(&self, make: impl FnOnce() -> Result<T, E>) -> Result<Arc<T>, E> {
        let mut made = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(made) = &*made {
            return Ok(Arc::clone(made));
        }
        Ok(Arc::clone(made.insert(Arc::new(make()?))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_made_once_and_failures_are_not_kept() {
        let lazily = Lazily::new();
        assert_eq!(lazily.get(|| Err("no")), Err("no"));
        assert_eq!(lazily.known(), None);
        assert_eq!(lazily.get(|| Ok::<_, &str>(1)).map(|made| *made), Ok(1));
        assert_eq!(lazily.get(|| Err("no")).map(|made| *made), Ok(1));
        assert_eq!(lazily.known().as_deref(), Some(&1));
    }
}
