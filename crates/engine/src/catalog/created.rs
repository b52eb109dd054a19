//! What a statement has made, and its number.

/// A relation or an index, under all its names and for ever: ids are never used again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectId(pub u64);

/// An object that a statement has made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Created {
    /// Its id.
    pub id: ObjectId,
    /// Its name.
    pub name: String,
    /// The statement that makes it.
    pub text: String,
}
