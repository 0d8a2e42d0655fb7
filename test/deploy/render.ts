/** How the chart is rendered, for the copies that are kept and for the test that they are the newest. */
import path from 'node:path'
import { chart } from './files.ts'

// The least that Chart.yaml allows; helm knows no cluster here.
const KUBERNETES = '1.27.0'

export function renderChart(set: string, helm: (args: string[]) => string): string {
  const values = path.join(chart, 'ci', `${set}.yaml`)
  const args = [
    'template',
    'atelier',
    chart,
    '--namespace',
    'atelier',
    '--kube-version',
    KUBERNETES,
    '--values',
    values,
  ]
  return helm(args).replaceAll(/[ \t]+$/gm, '')
}
