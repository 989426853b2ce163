-- Zipf with exponent 0.625 over all nodes (LinkBench FBWorkload.properties), by inversion: u^(1/(1-s)).
\set u random(1, 1000000000) / 1000000000.0
\set id permute(least(:nodes - 1, int(:nodes * pow(:u, 2.667))), :nodes, 11) + 1
SELECT id, type, version, time, data FROM nodetable WHERE id = :id;
