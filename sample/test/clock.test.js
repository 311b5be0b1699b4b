import assert from 'node:assert/strict';
import { test } from 'node:test';
import { clock } from '../src/clock.js';

test('whole minutes end in two zeros', () => {
  assert.equal(clock(0), '0:00');
  assert.equal(clock(240), '4:00');
});

test('seconds below ten have a zero in front', () => {
  assert.equal(clock(65), '1:05');
});
