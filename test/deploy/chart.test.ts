import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { parse } from 'yaml'
import { chart, hashOfChart, podsOf, project, readManifests, renderedText, valueSets } from './files.ts'
import { renderChart } from './render.ts'
import { openKubernetes } from './schemas.ts'
import { runTool, without } from './tools.ts'

const SETS = valueSets()
const deploymentsOf = (set: string) =>
  podsOf(readManifests(renderedText(set))).filter(({ kind }) => kind === 'Deployment')
const RENDER_AGAIN = 'the chart changed: run `node deploy/render-chart.ts`'

test('there are five sets of values, and each has its rendered copy', () => {
  assert.deepEqual(SETS, ['answers-only', 'joined-workers', 'platform', 'small', 'team'])
  for (const set of SETS) assert.ok(readManifests(renderedText(set)).length > 0, set)
})

test('the rendered copies are those of the templates and values', () => {
  const kept = readFileSync(path.join(chart, 'rendered/inputs.sha256'), 'utf8').trim()
  assert.equal(kept, hashOfChart(), RENDER_AGAIN)
})

test('helm renders exactly the copies, and finds nothing to complain of', without('helm'), () => {
  for (const set of SETS) {
    const values = path.join(chart, 'ci', `${set}.yaml`)
    const lint = runTool('helm', ['lint', '--strict', chart, '--values', values])
    assert.equal(lint.code, 0, lint.output)
    const rendered = renderChart(set, (args) => {
      const { code, output } = runTool('helm', args)
      assert.equal(code, 0, output)
      return output
    })
    assert.equal(rendered, renderedText(set), RENDER_AGAIN)
  }
})

test(
  'helm refuses a secret among the settings, a word that is no value, and a worker without a token',
  without('helm'),
  () => {
    const wrong = [
      ['settings.ATELIER_TOKEN=secret', /ATELIER_TOKEN/],
      ['api.replica=3', /replica/],
      ['runAsUser=0', /runAsUser/],
      ['workers[0].join.url=https://a.example.com,workers[0].name=a', /existingSecret/],
    ] as const
    for (const [value, complaint] of wrong) {
      const { code, output } = runTool('helm', ['template', 'x', chart, '--kube-version', '1.27.0', '--set', value])
      assert.notEqual(code, 0, value)
      assert.match(output, complaint)
    }
  },
)

for (const version of ['1.27', '1.37']) {
  test(`every object fits the schemas of Kubernetes ${version}, and has no member that they do not know`, () => {
    const judge = openKubernetes(version)
    for (const set of SETS) {
      for (const manifest of readManifests(renderedText(set))) {
        assert.deepEqual(judge(manifest), [], `${set}: ${manifest.kind} ${manifest.metadata.name}`)
      }
    }
  })
}

test('the schemas would find a misspelled member', () => {
  const judge = openKubernetes('1.37')
  const text = renderedText('small').replace('readinessProbe:', 'readynessProbe:')
  const complaints = readManifests(text).flatMap((manifest) => judge(manifest))
  assert.match(complaints.join('\n'), /readynessProbe/)
})

test('kubernetes-validate agrees', without('kubernetes-validate'), () => {
  for (const set of SETS) {
    const file = path.join(chart, 'rendered', `${set}.yaml`)
    const { code, output } = runTool('kubernetes-validate', ['--strict', '--quiet', '--no-warn', file])
    assert.deepEqual({ code, output }, { code: 0, output: '' }, set)
  }
})

test('every pod of ours is locked down', () => {
  for (const set of SETS) {
    for (const pod of podsOf(readManifests(renderedText(set)))) {
      const [container] = pod.containers
      assert.deepEqual(
        container.securityContext,
        { allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: { drop: ['ALL'] } },
        pod.name,
      )
      assert.ok((pod.securityContext as { runAsNonRoot?: boolean }).runAsNonRoot, pod.name)
      // What a process says last, such as why it ends with 2, is the reason that the cluster shows.
      assert.equal(container.terminationMessagePolicy, 'FallbackToLogsOnError', pod.name)
    }
  }
})

test('every pod that stays is asked whether it lives and is ready, and tells its metrics', () => {
  for (const set of SETS) {
    for (const pod of deploymentsOf(set)) {
      const [container] = pod.containers
      assert.ok(
        container.ports?.some(({ name }) => name === 'http'),
        pod.name,
      )
      // Whether it lives must not depend on anybody else.
      assert.deepEqual((container.livenessProbe as { httpGet: unknown }).httpGet, { path: '/healthz', port: 'http' })
      assert.deepEqual((container.readinessProbe as { httpGet: unknown }).httpGet, { path: '/readyz', port: 'http' })
    }
  }
})

test('only pods that answer have the admin token', () => {
  for (const set of SETS) {
    for (const pod of podsOf(readManifests(renderedText(set)))) {
      const hasToken = pod.containers[0].env?.some(({ name }) => name === 'ATELIER_ADMIN_TOKEN') ?? false
      if (hasToken) assert.match(pod.name, /-api$/, set)
    }
  }
})

interface IngressPath {
  readonly path: string
  readonly backend: { readonly service: { readonly name: string } }
}

test('the ingress leads neither to the admin API nor to metrics', () => {
  for (const set of ['team', 'platform']) {
    const manifests = readManifests(renderedText(set))
    const names = manifests.flatMap(({ kind, metadata }) => (kind === 'Service' ? [metadata.name] : []))
    const [ingress] = manifests.filter(({ kind }) => kind === 'Ingress')
    const { rules } = ingress.spec as { rules: { http: { paths: IngressPath[] } }[] }
    for (const { http } of rules) {
      const to = Object.fromEntries(http.paths.map(({ path: at, backend }) => [at, backend.service.name]))
      assert.deepEqual(to, { '/admin': 'atelier-hidden', '/metrics': 'atelier-hidden', '/': 'atelier-api' })
      for (const name of Object.values(to)) assert.ok(names.includes(name), name)
    }
    const hidden = manifests.find(({ metadata }) => metadata.name === 'atelier-hidden')?.spec as { selector: object }
    assert.deepEqual(hidden.selector, { ...SELECTOR, 'app.kubernetes.io/component': 'hidden' })
  }
})

const SELECTOR = { 'app.kubernetes.io/name': 'atelier', 'app.kubernetes.io/instance': 'atelier' }
const DNS = [53, 53]

interface Policy {
  readonly podSelector: { readonly matchLabels: Readonly<Record<string, string>> }
  readonly policyTypes: readonly string[]
  readonly egress: readonly { readonly ports: readonly { readonly port: number }[] }[]
}

test('every pod may connect to names, to each other where they do, and to the ports of what it uses, and nowhere else', () => {
  const portsOf = (set: string) =>
    Object.fromEntries(
      readManifests(renderedText(set))
        .filter(({ kind }) => kind === 'NetworkPolicy')
        .map(({ metadata, spec }) => {
          const { policyTypes, egress } = spec as Policy
          assert.deepEqual(policyTypes, ['Ingress', 'Egress'])
          return [metadata.name.replace('atelier-', ''), egress.flatMap(({ ports }) => ports.map(({ port }) => port))]
        }),
    )
  assert.deepEqual(portsOf('small'), {
    api: [...DNS, 8190, 443, 5432, 4222, 9000],
    'worker-default': [...DNS, 8190, 443, 5432, 4222, 8188, 9000],
    migrate: [...DNS, 5432, 443, 9000],
  })
  // It joins over HTTPS: neither a database nor a bus is any business of it.
  assert.deepEqual(portsOf('joined-workers')['worker-gpu'], [...DNS, 443, 8188])
  // The other set switches policies off.
  for (const set of SETS.filter((each) => each !== 'answers-only')) {
    const manifests = readManifests(renderedText(set))
    const selected = manifests.flatMap(({ kind, spec }) => (kind === 'NetworkPolicy' ? [spec as Policy] : []))
    for (const { kind, metadata, spec } of manifests.filter((each) => ['Deployment', 'Job'].includes(each.kind))) {
      const { labels } = (spec as { template: { metadata: { labels: Record<string, string> } } }).template.metadata
      const covering = selected.filter(({ podSelector: { matchLabels } }) =>
        Object.entries(matchLabels).every(([name, value]) => labels[name] === value),
      )
      assert.equal(covering.length, 1, `${set}: ${kind} ${metadata.name}`)
    }
  }
})

test('a pod is killed only after the longest drain that its settings allow', () => {
  const seconds = (text: string | undefined, otherwise: number) =>
    text === undefined ? otherwise : Number(text.replace('s', ''))
  for (const set of SETS) {
    for (const pod of deploymentsOf(set)) {
      const env = new Map(pod.containers[0].env?.map(({ name, value }) => [name, value]))
      const longest =
        seconds(env.get('ATELIER_DRAIN_DELAY'), 0) +
        seconds(env.get('ATELIER_DRAIN_TIMEOUT'), 30) +
        // For canceled runs to stop, and for the last answers.
        20
      assert.equal(pod.terminationGracePeriodSeconds, longest, `${set}: ${pod.name}`)
    }
  }
})

test('the chart names the version of the program', () => {
  const { version } = JSON.parse(readFileSync(path.join(project, 'package.json'), 'utf8')) as { version: string }
  const { appVersion } = parse(readFileSync(path.join(chart, 'Chart.yaml'), 'utf8')) as { appVersion: string }
  assert.equal(appVersion, version)
})
