\set id random(1, :nodes)
DELETE FROM nodetable WHERE id = :id AND type = 2048;
