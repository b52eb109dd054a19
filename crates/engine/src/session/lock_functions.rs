//! `pg_advisory_lock` and its like: advisory locks as functions of SQL.
//!
//! Law: a statement that has to wait for a lock fails, and is attempted again when its connection
//! has waited a while; what it had taken is given back before. Views have none of these functions.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Int64Array, StringViewArray};
use arrow::datatypes::{DataType, Int64Type};
use datafusion_common::{Result as DfResult, exec_err};
use datafusion_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, TypeSignature, Volatility,
};

use super::state::advisory::{AdvisoryLock, ClientLocks, HeldFor, LockKey};

/// What a call does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum LockCall {
    /// Takes a lock, and waits for it.
    Take(HeldFor),
    /// Takes a lock, or tells that it cannot be had.
    Try(HeldFor),
    GiveBack,
    GiveAllBack,
}

/// Names, without `_shared`.
const CALLS: [(&str, LockCall); 6] = [
    ("pg_advisory_lock", LockCall::Take(HeldFor::Client)),
    ("pg_advisory_xact_lock", LockCall::Take(HeldFor::Transaction)),
    ("pg_try_advisory_lock", LockCall::Try(HeldFor::Client)),
    ("pg_try_advisory_xact_lock", LockCall::Try(HeldFor::Transaction)),
    ("pg_advisory_unlock", LockCall::GiveBack),
    ("pg_advisory_unlock_all", LockCall::GiveAllBack),
];

struct LockFunction {
    name: String,
    call: LockCall,
    is_shared: bool,
    locks: Arc<ClientLocks>,
    signature: Signature,
}

/// The function of that name over a client's locks.
pub(crate) fn lock_function(name: &str, locks: &Arc<ClientLocks>) -> Option<Arc<ScalarUDF>> {
    let (base, is_shared) = name.strip_suffix("_shared").map_or((name, false), |base| (base, true));
    let (_, call) = *CALLS.iter().find(|(known, _)| *known == base)?;
    if is_shared && call == LockCall::GiveAllBack {
        return None;
    }
    let types = match call {
        LockCall::GiveAllBack => TypeSignature::Nullary,
        _ => TypeSignature::OneOf(vec![
            // (Whole literals are bigints here, so the two halves come as such.)
            TypeSignature::Uniform(1, vec![DataType::Int64]),
            TypeSignature::Uniform(2, vec![DataType::Int64]),
        ]),
    };
    let signature = Signature::new(types, Volatility::Volatile);
    let function = LockFunction { name: name.to_owned(), call, is_shared, locks: Arc::clone(locks), signature };
    Some(Arc::new(ScalarUDF::from(function)))
}

impl LockFunction {
    fn tells(&self) -> bool {
        matches!(self.call, LockCall::Try(_) | LockCall::GiveBack)
    }

    /// What the call tells of one lock.
    fn answer(&self, key: LockKey) -> DfResult<bool> {
        let lock = AdvisoryLock { key, is_shared: self.is_shared };
        match self.call {
            LockCall::Take(held_for) if !self.locks.take(lock, held_for) => {
                self.locks.want(lock);
                exec_err!("could not obtain the advisory lock")
            }
            LockCall::Take(_) => Ok(true),
            LockCall::Try(held_for) => Ok(self.locks.take(lock, held_for)),
            LockCall::GiveBack => Ok(self.locks.give_back(lock)),
            LockCall::GiveAllBack => {
                self.locks.give_all_back();
                Ok(true)
            }
        }
    }
}

/// The keys of each row; none where an argument is NULL.
fn keys(columns: &[ArrayRef], n_rows: usize) -> DfResult<Vec<Option<LockKey>>> {
    let columns: Vec<&Int64Array> = columns.iter().map(|column| column.as_primitive::<Int64Type>()).collect();
    let half = |value: i64| i32::try_from(value).or_else(|_| exec_err!("integer out of range"));
    let key = |row: usize| match columns.as_slice() {
        _ if columns.iter().any(|column| column.is_null(row)) => Ok(None),
        [one] => Ok(Some(LockKey::One(one.value(row)))),
        [first, second] => Ok(Some(LockKey::Two(half(first.value(row))?, half(second.value(row))?))),
        _ => Ok(Some(LockKey::One(0))),
    };
    (0..n_rows).map(key).collect()
}

impl ScalarUDFImpl for LockFunction {
    fn name(&self) -> &str {
        &self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _types: &[DataType]) -> DfResult<DataType> {
        Ok(if self.tells() { DataType::Boolean } else { DataType::Utf8View })
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> DfResult<ColumnarValue> {
        let n_rows = args.number_rows;
        let columns = args.args.iter().map(|arg| arg.to_array(n_rows)).collect::<DfResult<Vec<_>>>()?;
        let keys = keys(&columns, n_rows)?;
        let told = keys.into_iter().map(|key| key.map(|key| self.answer(key)).transpose());
        let told = told.collect::<DfResult<Vec<Option<bool>>>>()?;
        Ok(ColumnarValue::Array(match self.tells() {
            true => Arc::new(BooleanArray::from(told)),
            // (PostgreSQL's void is shown as an empty text.)
            false => Arc::new(told.into_iter().map(|done| done.map(|_| "")).collect::<StringViewArray>()),
        }))
    }
}

impl fmt::Debug for LockFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("LockFunction").field(&self.name).finish()
    }
}

impl PartialEq for LockFunction {
    fn eq(&self, other: &LockFunction) -> bool {
        self.name == other.name && Arc::ptr_eq(&self.locks, &other.locks)
    }
}

impl Eq for LockFunction {}

impl Hash for LockFunction {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}
