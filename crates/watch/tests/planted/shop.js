// Three quarters of the time in priceThree, the rest in priceOne; both are compiled by the time it prints.
'use strict';

function priceThree(turns) {
  let number = turns;
  for (let turn = 0; turn < turns; turn++) number = (Math.imul(number, 1664525) + 1013904223) | 0;
  return number;
}

function priceOne(turns) {
  let number = turns;
  for (let turn = 0; turn < turns; turn++) number = (Math.imul(number, 1664525) + 1013904223) | 0;
  return number;
}

function order() {
  return priceThree(30000) + priceOne(10000);
}

for (let n = 0; n < 2000; n++) order();
console.log('serving');
for (;;) order();
