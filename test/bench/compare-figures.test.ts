import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { compareFigures, type Run } from '../../bench/kit/compare-figures.ts'
import type { Figure } from '../../bench/kit/figure.ts'

describe('comparing two checkouts', () => {
  it('calls a figure worse when every run was, whichever way the figure counts', () => {
    const before = runs([1, 1.1, 0.9, 1.05, 1.02])
    const after = runs([2, 1.9, 2.2, 2.1, 1.8])
    assert.deepEqual(verdicts(before, after), ['better'])
    assert.deepEqual(verdicts(after, before), ['worse'])
    const times = (values: number[]) => runs(values, { direction: 'at_most' })
    assert.deepEqual(verdicts(times([1, 1.1, 0.9, 1.05, 1.02]), times([2, 1.9, 2.2, 2.1, 1.8])), ['worse'])
  })

  it('finds nothing in runs that overlap, nor in one disturbed run', () => {
    assert.deepEqual(verdicts(runs([1, 1.4, 0.8, 1.1, 1.2]), runs([1.1, 0.9, 1.3, 1, 1.5])), ['within noise'])
    assert.deepEqual(verdicts(runs([1, 1.1, 0.9, 1.05, 1.02]), runs([1.01, 1.08, 0.95, 9, 0.97])), ['within noise'])
  })

  it('says when there were too few runs to tell', () => {
    assert.deepEqual(verdicts(runs([1, 1.1, 0.9]), runs([5, 6, 7])), ['too few runs'])
  })

  it('finds a figure again although its name carries another measurement, and leaves out what only one side has', () => {
    const named = (name: string) => [1, 1, 1, 1].map(() => [{ ...FIGURE, name }])
    const [found, ...others] = compareFigures(named('added (a bare one: 1.06 ms)'), named('added (a bare one: 2.9 ms)'))
    assert.equal(found?.name, 'added')
    assert.equal(others.length, 0)
    assert.deepEqual(compareFigures(named('old'), named('new')), [])
  })

  it('states the medians and the spread', () => {
    const [found] = compareFigures(runs([1, 2, 3, 4, 10]), runs([2, 4, 6, 8]))
    assert.deepEqual(found?.before, { median: 3, least: 1, most: 10 })
    assert.deepEqual(found?.after, { median: 5, least: 2, most: 8 })
  })
})

const FIGURE: Figure = { name: 'figure', measured: 1, unit: '%', bar: 1, direction: 'at_least', detail: {} }

function runs(values: number[], change: Partial<Figure> = {}): Run[] {
  return values.map((measured) => [{ ...FIGURE, ...change, measured }])
}

function verdicts(before: Run[], after: Run[]): string[] {
  return compareFigures(before, after).map(({ verdict }) => verdict)
}
