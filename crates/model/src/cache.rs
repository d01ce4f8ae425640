//! Set-associative tables with least-recently-used replacement: caches and TLBs.

const EMPTY: u64 = u64::MAX;

/// Keys in sets, each set from the most to the least recently used. Which set: the key modulo the number of sets.
pub struct Lru {
    entries: Vec<u64>,
    ways: usize,
    sets: u64,
    /// `sets - 1` where that is a mask.
    mask: Option<u64>,
}

impl Lru {
    pub fn new(sets: u64, ways: u64) -> Lru {
        let mask = sets.is_power_of_two().then(|| sets - 1);
        Lru { entries: vec![EMPTY; (sets * ways) as usize], ways: ways as usize, sets, mask }
    }

    /// Return a cache of one set: any key can be anywhere.
    pub fn fully_associative(entries: usize) -> Lru {
        Lru::new(1, entries as u64)
    }

    /// Return whether the key was there; from now on it is.
    #[inline(always)]
    pub fn touch(&mut self, key: u64) -> bool {
        let first = self.first_of(key);
        if self.entries[first] == key {
            return true;
        }
        self.touch_further(first, key)
    }

    #[inline(always)]
    fn first_of(&self, key: u64) -> usize {
        let set = match self.mask {
            Some(mask) => key & mask,
            None => key % self.sets,
        };
        set as usize * self.ways
    }

    pub fn holds(&self, key: u64) -> bool {
        let first = self.first_of(key);
        self.entries[first..first + self.ways].contains(&key)
    }

    /// Drop a key, whose place is the next to be taken.
    pub fn forget(&mut self, key: u64) {
        let first = self.first_of(key);
        let set = &mut self.entries[first..first + self.ways];
        if let Some(place) = set.iter().position(|entry| *entry == key) {
            set[place..].rotate_left(1);
            set[self.ways - 1] = EMPTY;
        }
    }

    pub fn forget_all(&mut self) {
        self.entries.fill(EMPTY);
    }

    /// Forget the key that was touched just now, but can't be kept.
    pub fn forget_latest(&mut self, key: u64) {
        let first = self.first_of(key);
        self.entries[first] = EMPTY;
    }

    fn touch_further(&mut self, first: usize, key: u64) -> bool {
        let set = &mut self.entries[first..first + self.ways];
        let position = set.iter().position(|entry| *entry == key);
        set[..=position.unwrap_or(self.ways - 1)].rotate_right(1);
        set[0] = key;
        position.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_stays_until_as_many_others_of_its_set_were_used() {
        let mut cache = Lru::new(2, 2);
        assert!(!cache.touch(0));
        assert!(!cache.touch(2));
        assert!(cache.touch(0));
        assert!(!cache.touch(4)); // 2 was used least recently
        assert!(cache.touch(0));
        assert!(!cache.touch(2));
    }

    #[test]
    fn the_place_of_a_key_that_was_dropped_is_taken_first() {
        let mut tlb = Lru::fully_associative(3);
        for key in [7, 70, 700] {
            tlb.touch(key);
        }
        tlb.forget(70);
        tlb.forget(71);
        assert!(!tlb.holds(70) && !tlb.touch(8));
        assert!(tlb.holds(7) && tlb.holds(700));
        tlb.forget_all();
        assert!(!tlb.holds(7) && !tlb.holds(8));
    }

    #[test]
    fn sets_do_not_disturb_each_other() {
        let mut cache = Lru::new(3, 1);
        assert!(!cache.touch(0) && !cache.touch(1) && !cache.touch(2));
        assert!(cache.touch(0) && cache.touch(1) && cache.touch(2));
        assert!(!cache.touch(3) && cache.touch(1) && !cache.touch(0));
    }

    #[test]
    fn one_set_holds_any_keys() {
        let mut tlb = Lru::fully_associative(3);
        for key in [7, 70, 700] {
            assert!(!tlb.touch(key));
        }
        assert!(tlb.touch(7) && tlb.touch(700) && tlb.touch(70));
    }
}
