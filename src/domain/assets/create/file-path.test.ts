import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ServiceError } from '../../errors.ts'
import { MODEL_ROOTS, readFilePath } from './file-path.ts'

const refused = (error: unknown) => error instanceof ServiceError && error.refusal === 'invalid_field'

test('names and relative paths pass as they are', () => {
  for (const path of [
    'photo.png',
    'input/x.png',
    'a/b/c/d.txt',
    'Fotó żółw 写真.png',
    '.hidden',
    'x..png',
    'a b.png',
    'modelsheet.png',
  ]) {
    assert.deepEqual(readFilePath(path), { path, model: null })
  }
})

test('a path below models is a model of its root', () => {
  assert.deepEqual(readFilePath('models/checkpoints/sub/x.safetensors').model, {
    root: 'checkpoints',
    name: 'sub/x.safetensors',
  })
  assert.ok(!MODEL_ROOTS.includes('configs') && !MODEL_ROOTS.includes('custom_nodes'))
})

const REFUSED: Readonly<Record<string, readonly string[]>> = {
  'absolute paths': ['/etc/passwd', '//x', 'C:/x', 'c:x'],
  'ways upwards': ['..', '../x', 'input/../checkpoints/x', 'input/../../etc', 'a/..', 'a/...', '.', './x', 'a/./b'],
  backslashes: ['a\\b', '..\\x', '\\\\host\\share'],
  'control characters': ['a\u0000b', 'a\nb', 'a\u007f', 'a\u0085', 'a\u202eb', '\ud800'],
  'empty parts': ['', 'a//b', 'a/', 'input/'],
  'bare roots': ['input', 'output', 'temp', 'models', 'models/checkpoints'],
  'unlisted roots': ['models/custom_nodes/x.safetensors', 'models/configs/x.safetensors', 'models/x.safetensors'],
  'other model files': ['models/loras/x.ckpt', 'models/loras/x.pt', 'models/loras/x', 'models/loras/.safetensors'],
}

for (const [kind, paths] of Object.entries(REFUSED)) {
  test(`${kind} are refused`, () => {
    for (const path of paths) assert.throws(() => readFilePath(path), refused, JSON.stringify(path))
  })
}

test('lengths are counted in bytes', () => {
  readFilePath(`${'a'.repeat(255)}/b`)
  assert.throws(() => readFilePath('a'.repeat(256)), refused)
  assert.throws(() => readFilePath('ä'.repeat(128)), refused)
  readFilePath(`${'abc/'.repeat(255)}abcd`)
  assert.throws(() => readFilePath(`${'abc/'.repeat(255)}abcde`), refused)
})
