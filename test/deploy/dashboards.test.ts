/** Dashboards and alerts ask only for what the service really serves: every series and every label of every expression. */
import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { before, test } from 'node:test'
import { parse } from 'yaml'
import { pictureGraph } from '../support/app/fleet-app.ts'
import { startTestApp } from '../support/app/start-app.ts'
import { openaiFake } from '../support/providers/fake-providers/direct.ts'
import { startFakeProvider } from '../support/providers/fake-providers/fake-card.ts'
import { createLoopbackNetwork } from '../support/providers/loopback-network.ts'
import { waitUntil } from '../support/wait-until.ts'
import { read } from './files.ts'
import { readPromql } from './promql.ts'

/** Prometheus itself adds these to whatever it reads. */
const ADDED = ['instance', 'job']

/** By series, the labels that its samples have; of one without samples they are not known. */
let served: ReadonlyMap<string, ReadonlySet<string>>

before(async () => {
  served = readServed(await readMetrics())
})

/** After a job and a call of a model, so that there are samples. */
async function readMetrics(): Promise<string> {
  await using stack = new AsyncDisposableStack()
  const fake = stack.use(await startFakeProvider(openaiFake))
  const directory = await mkdtemp(path.join(tmpdir(), 'atelier-test-'))
  stack.defer(() => rm(directory, { recursive: true, force: true }))
  const providers = path.join(directory, 'providers.json')
  await writeFile(providers, JSON.stringify({ openai: { key: openaiFake.key, base_url: fake.baseUrl } }))
  const overrides = { models: { network: createLoopbackNetwork() } }
  const app = stack.use(await startTestApp({ settings: { providers }, overrides }))
  const post = (link: string, body: object) =>
    fetch(`${app.url}${link}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
  await post('/api/v2/jobs', { workflow: pictureGraph(1), reuse: 'exact' })
  await post('/v2/models/openai/gpt-image-1', { prompt: 'a fox' })
  await post('/v2/models/openai/gpt-image-1', {})
  return await waitUntil(async () => {
    const text = await (await fetch(`${app.url}/metrics`)).text()
    return /^atelier_jobs_finished_total\{.* 1$/m.test(text) ? text : null
  })
}

function readServed(text: string): ReadonlyMap<string, ReadonlySet<string>> {
  const found = new Map<string, Set<string>>()
  for (const [, name, type] of text.matchAll(/^# TYPE (\S+) (\S+)$/gm)) {
    const ends = type === 'histogram' ? ['_bucket', '_sum', '_count'] : ['']
    for (const end of ends) found.set(`${name}${end}`, new Set())
  }
  for (const [, name, labels] of text.matchAll(/^([a-z]\w*)\{(.*)\} \S+$/gm))
    for (const [, label] of labels.matchAll(/(\w+)="(?:[^"\\]|\\.)*"/g)) found.get(name)?.add(label)
  return found
}

function check(expression: string): void {
  const { selectors, groups } = readPromql(expression)
  assert.ok(selectors.length > 0, expression)
  const must = (metric: string, label: string) =>
    assert.ok(served.get(metric)?.has(label) || ADDED.includes(label), `${metric} has no label ${label}: ${expression}`)
  for (const { metric, labels } of selectors) {
    assert.ok(served.has(metric), `the service serves no ${metric}: ${expression}`)
    for (const label of labels) must(metric, label)
  }
  for (const { labels, metrics } of groups)
    for (const metric of metrics) for (const label of labels) must(metric, label)
}

test('the reader of expressions refuses what is broken', () => {
  const broken = ['sum(a', 'a{b}', 'a{b="c"', 'rate(a)', 'a[5x]', 'a b', 'sum by b (a)', '5 >', 'a{b=~"("}', 'a # b']
  for (const text of broken) assert.throws(() => readPromql(text), text)
  assert.throws(() => check('atelier_nothing_total'))
  assert.throws(() => check('atelier_jobs{colour="red"}'))
  assert.throws(() => check('sum by (colour) (atelier_jobs)'))
})

test('every expression of the dashboard asks for series that are there', () => {
  const { panels } = JSON.parse(read('deploy/grafana/atelier.json')) as {
    panels: { id: number; title: string; type: string; targets?: { expr: string; legendFormat: string }[] }[]
  }
  assert.equal(new Set(panels.map(({ id }) => id)).size, panels.length)
  const targets = panels.flatMap(({ targets: own = [] }) => own)
  assert.ok(targets.length >= 30)
  for (const { expr, legendFormat } of targets) {
    check(expr)
    const groups = readPromql(expr).groups.flatMap(({ labels }) => labels)
    for (const [, label] of legendFormat.matchAll(/\{\{(\w+)\}\}/g))
      assert.ok(groups.includes(label) || ADDED.includes(label), `${legendFormat} names no label of: ${expr}`)
  }
})

test('every alert asks for series that are there, and says what to look at', () => {
  const { groups } = parse(read('deploy/prometheus/alerts.yaml')) as {
    groups: { rules: { alert: string; expr: string; for?: string; annotations: Record<string, string> }[] }[]
  }
  const rules = groups.flatMap((group) => group.rules)
  assert.equal(new Set(rules.map(({ alert }) => alert)).size, rules.length)
  for (const { alert, expr, annotations } of rules) {
    check(expr)
    assert.match(alert, /^Atelier[A-Z]\w+$/)
    assert.ok(annotations['summary'], alert)
    const grouped = readPromql(expr).groups.flatMap(({ labels }) => labels)
    for (const [, label] of Object.values(annotations)
      .join(' ')
      .matchAll(/\$labels\.(\w+)/g))
      assert.ok(grouped.includes(label), `${alert} names ${label}, which its expression does not keep`)
  }
})

test('what the page about operations calls worth an alert is served', () => {
  const [, table = ''] = /## Metrics worth an alert\n([\s\S]*?)\n## /.exec(read('docs/operations.md')) ?? []
  const named = [...table.matchAll(/`((?:atelier|process|nodejs)_\w+)/g)].map(([, name]) => name)
  assert.ok(named.length > 10)
  for (const name of named) assert.ok(served.has(name) || served.has(`${name}_count`), name)
})
