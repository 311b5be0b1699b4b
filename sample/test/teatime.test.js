import assert from 'node:assert/strict';
import { test } from 'node:test';
import { teatime } from '../src/teatime.js';

test('the card lists the teas in the order of pouring', () => {
  assert.equal(
    teatime(['darjeeling', 'assam']),
    '0:00  pour the assam (95 °C)\n1:00  pour the darjeeling (90 °C)\n4:00  tea is ready',
  );
});

test('without guests there is no tea', () => {
  assert.equal(teatime([]), 'No tea today.');
});
