//! Functions of users, which plans carry and operators call.

use std::any::Any;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// A function that a plan carries without knowing what it does. Equal are those that are the same
/// object.
#[derive(Clone)]
pub struct Foreign {
    name: String,
    function: Arc<dyn Any + Send + Sync>,
}

impl Foreign {
    /// A function with the name that plans show.
    pub fn new(name: &str, function: impl Any + Send + Sync) -> Foreign {
        Foreign { name: name.to_owned(), function: Arc::new(function) }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The function itself, if it is of this type.
    pub fn function<F: Any>(&self) -> Option<&F> {
        self.function.downcast_ref()
    }

    fn address(&self) -> usize {
        Arc::as_ptr(&self.function).cast::<()>() as usize
    }
}

impl PartialEq for Foreign {
    fn eq(&self, other: &Foreign) -> bool {
        self.address() == other.address()
    }
}

impl Eq for Foreign {}

impl Hash for Foreign {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.address().hash(state);
    }
}

impl fmt::Debug for Foreign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Foreign").field(&self.name).finish()
    }
}
