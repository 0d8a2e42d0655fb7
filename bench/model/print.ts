/**
 * `node bench/model/print.ts [measured.json]`: what services of several sizes need, out of what was measured (`npm run bench model`
 * measures it into bench/results/model.json; without an argument, the measurement that is kept beside this file).
 */
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { Measured } from './costs.ts'
import { LIMITS, PRICES } from './predict.ts'
import { toCostTable, toEndTable, toErrorTable, toPlanTable } from './report.ts'

const file = process.argv[2] ?? fileURLToPath(new URL('measured.json', import.meta.url))
const measured = JSON.parse(readFileSync(file, 'utf8')) as Measured

console.log(`measured ${measured.measuredAt} on ${measured.machine}`)
for (const toText of [toCostTable, toEndTable, toPlanTable, toErrorTable]) console.log(`\n${toText(measured)}`)
console.log(`\nlimits: ${JSON.stringify(LIMITS)}\nprices in US dollars: ${JSON.stringify(PRICES)}`)
