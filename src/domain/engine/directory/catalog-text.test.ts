import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { NodeCatalog, NodeDefinition } from '../../../../engine/graph/node-catalog.ts'
import { catalogOf, type ObjectInfo } from '../../../../engine/graph/object-info.ts'
import { fakeCatalog } from '../../../../test/support/engines/fake-catalog.ts'
import { readCatalog, writeCatalog } from './catalog-text.ts'

const info: ObjectInfo = Object.fromEntries(
  fakeCatalog.classTypes().map((classType) => [classType, fakeCatalog.find(classType) as NodeDefinition]),
)

/** Everything that a catalog says of a class. */
function sayings(catalog: NodeCatalog, classType: string) {
  const selfChecked = catalog.selfCheckedInputs(classType)
  return {
    definition: catalog.find(classType),
    selfChecked,
    files: catalog.fileInputs?.(classType) ?? selfChecked,
    folders: catalog.folderInputs?.(classType) ?? [],
    judgesItself: catalog.judgesItself?.(classType) ?? false,
    repeatability: catalog.repeatability?.(classType) ?? null,
  }
}

test('a catalog comes back as it was, with what object_info does not say', () => {
  const [checked, judged] = fakeCatalog.classTypes()
  const own: NodeCatalog = {
    ...catalogOf(info),
    selfCheckedInputs: (classType) => (classType === checked ? ['file', 'folder', 'word'] : []),
    fileInputs: (classType) => (classType === checked ? ['file'] : []),
    folderInputs: (classType) => (classType === checked ? ['folder'] : []),
    judgesItself: (classType) => classType === judged,
    repeatability: (classType) => (classType === judged ? { build: 'b', names: ['file'] } : null),
  }
  const { catalog, info: read } = readCatalog(writeCatalog(info, own).text)
  assert.deepEqual(catalog.classTypes(), own.classTypes())
  for (const classType of [...own.classTypes(), 'Unknown']) {
    assert.deepEqual(sayings(catalog, classType), sayings(own, classType), classType)
  }
  assert.deepEqual(Object.keys(read), Object.keys(info))
})

test('weights travel beside the classes of a server, which stay as they are, and nonsense in their place is left out', () => {
  const weights = [{ folder: 'loras', name: 'sub/a.safetensors', sizeBytes: 2 ** 40, hash: null }]
  const { text } = writeCatalog(info, null, weights)
  const { catalog, weights: read } = readCatalog(text)
  assert.deepEqual(read, weights)
  for (const classType of catalog.classTypes())
    assert.deepEqual(sayings(catalog, classType), sayings(catalogOf(info), classType))
  for (const nonsense of ['"no JSON"', '7', '{}', '"[7,[1],[null,\\"\\",1,null]]"']) {
    const changed = text.replace(/"\$weights":"(?:[^"\\]|\\.)*"/, () => `"$weights":${nonsense}`)
    assert.deepEqual(readCatalog(changed).weights ?? [], [])
  }
})

test('the same content has the same name, and any other has another', () => {
  const { hash, text } = writeCatalog(info, null)
  assert.equal(writeCatalog({ ...info }, null).hash, hash)
  assert.notEqual(writeCatalog({ ...info, More: info[fakeCatalog.classTypes()[0]!]! }, null).hash, hash)
  const { catalog } = readCatalog(text)
  for (const classType of catalog.classTypes()) {
    assert.deepEqual(sayings(catalog, classType), sayings(catalogOf(info), classType))
  }
})
