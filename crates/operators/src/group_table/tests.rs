use super::*;
use arrow::array::{Int64Array, StringViewArray};
use std::sync::Arc;

type Key = (Option<i64>, Option<String>);

fn columns(keys: &[Key]) -> Vec<ArrayRef> {
    let numbers: Int64Array = keys.iter().map(|key| key.0).collect();
    let texts: StringViewArray = keys.iter().map(|key| key.1.as_deref()).collect();
    vec![Arc::new(numbers), Arc::new(texts)]
}

fn random_key(state: &mut u64) -> Key {
    *state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
    let number = *state >> 33;
    let text = (!number.is_multiple_of(5)).then(|| format!("{:>width$}", number % 11, width = (number % 20) as usize));
    ((!number.is_multiple_of(7)).then_some((number % 40) as i64), text)
}

/// Checks `touch` and `release` against a dictionary; hashes keep only the bits of `mask`.
fn check_with_mask(mask: u64) {
    let mut table = GroupTable::new(&[DataType::Int64, DataType::Utf8View]);
    let mut model: HashMap<Key, u32> = HashMap::new();
    let mut state = mask;
    for round in 0..60 {
        let keys: Vec<Key> = (0..50).map(|_| random_key(&mut state)).collect();
        let columns = columns(&keys);
        let hashes: Vec<u64> = hash::hash_columns(&columns, keys.len()).iter().map(|hash| hash & mask).collect();
        let touched = table.touch(&columns, &hashes);
        assert!(
            touched
                .slot
                .iter()
                .zip(&touched.first_row)
                .all(|(_, &row)| touched.first_row[touched.of_row[row as usize] as usize] == row)
        );
        for (row, key) in keys.iter().enumerate() {
            let slot = touched.slot[touched.of_row[row] as usize];
            assert_eq!(*model.entry(key.clone()).or_insert(slot), slot, "round {round}: {key:?}");
        }
        let distinct: std::collections::HashSet<u32> = model.values().copied().collect();
        assert_eq!((distinct.len(), table.len()), (model.len(), model.len()));
        assert!(distinct.iter().all(|&slot| (slot as usize) < table.n_slots()));
        for (index, &row) in touched.first_row.iter().enumerate().filter(|(index, _)| index % 2 == round % 2) {
            table.release(touched.slot[index], hashes[row as usize]);
            model.remove(&keys[row as usize]);
        }
    }
    let slots_max = table.n_slots();
    assert!(slots_max < 600, "slots are reused: {slots_max}");
}

#[test]
fn equal_keys_share_a_slot() {
    check_with_mask(!0);
}

#[test]
fn colliding_keys_have_slots_of_their_own() {
    check_with_mask(0);
    check_with_mask(0x1000_0000_0000_0001);
}

#[test]
fn the_null_of_an_exact_key_collides_with_no_number() {
    let mut table = GroupTable::new(&[DataType::Int64]);
    let columns: Vec<ArrayRef> = vec![Arc::new(Int64Array::from(vec![None, Some(1), None, Some(1)]))];
    // As if NULL hashed as 1 does.
    let hash = hash::hash_columns(&columns, 4)[1];
    let touched = table.touch(&columns, &[hash; 4]);
    assert_eq!((touched.of_row.as_slice(), touched.first_row.as_slice()), ([0, 1, 0, 1].as_slice(), [0, 1].as_slice()));
    table.release(touched.slot[0], hash);
    assert_eq!(table.touch(&columns[..1], &[hash; 4]).slot, touched.slot);
    assert_eq!(table.len(), 2);
}

#[test]
fn shrinking_keeps_the_groups_that_are_left() {
    let mut table = GroupTable::new(&[DataType::Int64, DataType::Utf8View]);
    let keys: Vec<Key> = (0..20_000).map(|number| (Some(number), Some(format!("number {number}")))).collect();
    let columns = columns(&keys);
    let hashes = hash::hash_columns(&columns, keys.len());
    let touched = table.touch(&columns, &hashes);
    assert_eq!(table.shrink(), None);
    let full = table.size_bytes();
    for row in (0..20_000).filter(|row| row % 100 != 7) {
        table.release(touched.slot[row], hashes[row]);
    }
    let old_of_new = table.shrink().expect("most slots are free");
    assert!(table.size_bytes() < full / 20, "{} of {full} bytes", table.size_bytes());
    assert_eq!((table.len(), table.n_slots(), old_of_new.len()), (200, 200, 200));
    let kept: Vec<usize> = (0..20_000).filter(|row| row % 100 == 7).collect();
    let again = table.touch(&columns, &hashes);
    for &row in &kept {
        let slot = again.slot[again.of_row[row] as usize] as usize;
        assert_eq!(old_of_new[slot], touched.slot[touched.of_row[row] as usize]);
    }
    assert_eq!(table.len(), 20_000);
}
