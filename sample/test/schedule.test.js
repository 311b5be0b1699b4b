import assert from 'node:assert/strict';
import { test } from 'node:test';
import { schedule } from '../src/schedule.js';

const pourTimes = (...names) => Object.fromEntries(schedule(names).map(({ name, pourAt }) => [name, pourAt]));

test('one tea is poured at once', () => {
  assert.deepEqual(pourTimes('sencha'), { sencha: 0 });
});

test('the tea that steeps longest is poured first', () => {
  assert.deepEqual(pourTimes('darjeeling', 'assam'), { assam: 0, darjeeling: 60 });
});

test('a quick tea waits for a slow one', () => {
  assert.deepEqual(pourTimes('assam', 'gyokuro'), { assam: 0, gyokuro: 150 });
});

test('an unknown tea is named, and so are the teas there are', () => {
  assert.throws(() => schedule(['earl grey']), /There is no earl grey\. We have assam, /);
});
