/**
 * `node deploy/render-chart.ts`: renders the chart with each set of values in chart/ci into chart/rendered, for which `helm` must be
 * installed. The copies are part of the repository, so that they can be checked where it is not, and so that a change of a
 * template shows what it changes.
 */
import { execFileSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { chart, hashOfChart, valueSets } from '../test/deploy/files.ts'
import { renderChart } from '../test/deploy/render.ts'

const folder = path.join(chart, 'rendered')
mkdirSync(folder, { recursive: true })
for (const set of valueSets()) {
  writeFileSync(
    path.join(folder, `${set}.yaml`),
    renderChart(set, (args) => execFileSync('helm', args, { encoding: 'utf8' })),
  )
}
writeFileSync(path.join(folder, 'inputs.sha256'), `${hashOfChart()}\n`)
