//! Users: the one that owns everything, and those that have logged in.
//!
//! Law: a user's number stays while the database is open. Rights are the server's to give: here
//! nothing is told of them but who owns everything.

use super::lists::DATABASE;
use super::schema::Row;
use super::snapshot::{OWNER, Snapshot};

/// The number of the first user that has logged in.
const FIRST_USER: u32 = 100;

/// Number, name, and whether everything is the user's.
fn known(snapshot: &Snapshot) -> impl Iterator<Item = (u32, &str, bool)> {
    let users = (FIRST_USER..).zip(&snapshot.users).map(|(oid, name)| (oid, name.as_str(), false));
    std::iter::once((OWNER, DATABASE, true)).chain(users)
}

/// `pg_roles` and `pg_authid`.
pub(super) fn roles(snapshot: &Snapshot) -> Vec<Row> {
    let role = |(oid, name, is_owner): (u32, &str, bool)| {
        vec![
            ("oid", oid.into()),
            ("rolname", name.into()),
            ("rolsuper", is_owner.into()),
            ("rolinherit", true.into()),
            ("rolcreaterole", is_owner.into()),
            ("rolcreatedb", is_owner.into()),
            ("rolcanlogin", true.into()),
            ("rolreplication", false.into()),
            ("rolbypassrls", is_owner.into()),
            ("rolconnlimit", (-1).into()),
        ]
    };
    known(snapshot).map(role).collect()
}

/// `pg_user`.
pub(super) fn users(snapshot: &Snapshot) -> Vec<Row> {
    let user = |(oid, name, is_owner): (u32, &str, bool)| {
        vec![
            ("usename", name.into()),
            ("usesysid", oid.into()),
            ("usecreatedb", is_owner.into()),
            ("usesuper", is_owner.into()),
            ("userepl", false.into()),
            ("usebypassrls", is_owner.into()),
        ]
    };
    known(snapshot).map(user).collect()
}
