import assert from 'node:assert/strict'
import type { IncomingMessage } from 'node:http'
import { test } from 'node:test'
import { createDeploymentHosts, createRouteDeployment, deploymentAddressOf } from './deployment-address.ts'

test('a host names a deployment by exactly one label, with the staging label on either side', () => {
  const hosts = createDeploymentHosts({ domain: 'example.com', stagingLabel: 'stg' })
  const named: [string, string | null][] = [
    ['demo.run.example.com', 'demo'],
    ['a-1.run.example.com', 'a-1'],
    ['demo.stg.run.example.com', 'demo'],
    ['demo.run.stg.example.com', 'demo'],
    ['run.example.com', null],
    ['.run.example.com', null],
    ['a.b.run.example.com', null],
    ['-a.run.example.com', null],
    ['demo.run.example.com.evil.test', null],
    ['demorun.example.com', null],
    ['demo.example.com', null],
    ['example.com', null],
  ]
  for (const [host, id] of named) assert.equal(hosts(host), id, host)
})

test('a prefix is taken off, the rest of the address stays as it was', () => {
  function routed(url: string, mountPrefix = ''): [string | undefined, string | null] {
    const request = { url } as IncomingMessage
    createRouteDeployment(mountPrefix)(request)
    return [request.url, deploymentAddressOf(request)?.prefix ?? null]
  }
  assert.deepEqual(routed('/deployment/demo/api/v2/jobs?a=/x'), ['/api/v2/jobs?a=/x', '/deployment/demo'])
  assert.deepEqual(routed('/base/deployment/demo/docs', '/base'), ['/base/docs', '/deployment/demo'])
  assert.deepEqual(routed('/deployment/a/deployment/b/x'), ['/deployment/b/x', '/deployment/a'])
  const untouched = [
    '/api/v2/jobs',
    '/deployment/',
    '/deployment/demo',
    '/deployment//x',
    '/deployment/De/x',
    '/deployment/a%2Fb/x',
    '/x/deployment/demo/y',
  ]
  for (const url of untouched) assert.deepEqual(routed(url), [url, null], url)
})
