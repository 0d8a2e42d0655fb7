/** What several engines can run together, described as one catalog. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { InputSpec, NodeCatalog, NodeDefinition } from '../../../engine/graph/node-catalog.ts'
import { uniteCatalogs } from '../../../src/domain/workflows/union-catalog.ts'

function catalogOf(classes: Record<string, InputSpec>, facts: Partial<NodeCatalog> = {}): NodeCatalog {
  const definitions = new Map(
    Object.entries(classes).map(([classType, spec]) => [
      classType,
      { name: classType, input: { required: { value: spec } }, output: [] } as unknown as NodeDefinition,
    ]),
  )
  return {
    find: (classType) => definitions.get(classType) ?? null,
    classTypes: () => [...definitions.keys()],
    selfCheckedInputs: () => [],
    ...facts,
  }
}

test('a value is offered when some engine offers it', () => {
  const united = uniteCatalogs([catalogOf({ Load: [['a', 'b']] }), catalogOf({ Load: [['b', 'c']] })])
  assert.deepEqual(united.find('Load')?.input.required?.['value'], [['a', 'b', 'c']])
})

test('what an engine says of its files, folders and own checks holds beside others', () => {
  const named = () => ['value']
  const facts = { selfCheckedInputs: named, fileInputs: named, folderInputs: named, judgesItself: () => true }
  const united = uniteCatalogs([catalogOf({ Other: ['STRING'] }), catalogOf({ FromFolder: ['STRING'] }, facts)])
  assert.deepEqual(
    [united.selfCheckedInputs, united.fileInputs, united.folderInputs].map((ask) => ask?.('FromFolder')),
    [['value'], ['value'], ['value']],
  )
  assert.equal(united.judgesItself?.('FromFolder'), true)
  assert.deepEqual(united.folderInputs?.('Other'), [])
})

test('a guest adds classes and choices, and changes nothing of a class that others have', () => {
  const guest = catalogOf({ Load: [['c']], New: ['STRING'] }, { judgesItself: () => true })
  const united = uniteCatalogs([catalogOf({ Load: [['a']] })], [guest])
  assert.deepEqual(united.classTypes(), ['Load', 'New'])
  assert.deepEqual(united.find('Load')?.input.required?.['value'], [['a', 'c']])
  assert.deepEqual([united.judgesItself?.('Load'), united.judgesItself?.('New')], [false, true])
})

test('that results are the same again is promised where every engine that has the class promises it for one build', () => {
  const promising = (build: string) =>
    catalogOf({ Load: ['STRING'] }, { repeatability: () => ({ build, names: ['value'] }) })
  const silent = catalogOf({ Load: ['STRING'] })
  const promiseOf = (own: NodeCatalog[], guests: NodeCatalog[] = []) =>
    uniteCatalogs(own, guests).repeatability?.('Load') ?? null
  assert.deepEqual(promiseOf([promising('a')]), { build: 'a', names: ['value'] })
  assert.deepEqual(promiseOf([promising('a'), promising('a'), catalogOf({})])?.build, 'a')
  assert.equal(promiseOf([promising('a'), promising('b')]), null)
  assert.equal(promiseOf([promising('a'), silent]), null)
  assert.equal(promiseOf([silent, promising('a')]), null)
  assert.equal(promiseOf([promising('a')], [promising('a')]), null)
  assert.equal(promiseOf([], [promising('a')]), null)
})
