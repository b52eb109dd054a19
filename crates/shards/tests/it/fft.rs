//! S16: a Fourier transform by a split equals the direct one, whatever the shards and the order of
//! arrival.

use anabranch_shards::Layout;

#[path = "../../examples/fft.rs"]
mod example;

#[test]
fn s16_a_transform_by_split_equals_the_direct_one() {
    let windows = example::waves(5, 64);
    for shards in [1, 2, 3] {
        let found = example::transforms(&windows, Layout::flat(shards)).unwrap();
        assert_eq!(found.len(), windows.len());
        for (found, samples) in found.iter().zip(&windows) {
            let apart = example::difference(found, &example::direct(samples));
            assert!(apart < 1e-9, "{shards} shards: {apart}");
        }
    }
}
