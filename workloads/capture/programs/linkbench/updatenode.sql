-- Zipf with exponent 0.606 over all nodes (LinkBench FBWorkload.properties), by inversion: u^(1/(1-s)).
\set u random(1, 1000000000) / 1000000000.0
\set id permute(least(:nodes - 1, int(:nodes * pow(:u, 2.538))), :nodes, 7) + 1
\set length greatest(1, int(128 * exp(random_gaussian(-4000, 4000, 4.0) / 1000.0)))
UPDATE nodetable SET version = version + 1, time = time + 1, data = left(repeat('fedcba9876543210', 512), :length)
WHERE id = :id AND type = 2048;
