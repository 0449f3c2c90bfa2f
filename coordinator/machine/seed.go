package machine

// mix is the finaliser of splitmix64 (Steele, Lea, Flood 2014): a bijection whose
// output bits each depend on all input bits.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// listSeed is the seed of the items of a list.
func listSeed(job uint64, list int) uint64 {
	switch list {
	case 0:
		return job
	case 1:
		return ^job
	}
	return mix(job + uint64(list))
}

// taskSeed is the seed of a task about an item in a sweep. Neither step nor
// attempt enters: a redone task draws the same numbers, whoever runs it and whenever.
func taskSeed(job uint64, item, sweep uint32) uint64 {
	return mix(mix(job) ^ uint64(item)<<32 ^ uint64(sweep))
}
