import assert from 'node:assert/strict'
import { test } from 'node:test'
import { extensionFromType, extensionOf, isActiveType, isInertType, isMediaType, typeFromName } from './mime.ts'

test('a type is found by the extension, whatever its case', () => {
  assert.equal(typeFromName('a/b/Photo.JPEG'), 'image/jpeg')
  assert.equal(typeFromName('x.safetensors'), 'application/x-safetensors')
  assert.equal(typeFromName('mesh.glb'), 'model/gltf-binary')
  assert.equal(typeFromName('unknown.zzz'), null)
  assert.equal(typeFromName('noextension'), null)
})

test('a hidden file and a dotted folder have no extension', () => {
  assert.equal(extensionOf('.png'), null)
  assert.equal(extensionOf('a.d/name'), null)
  assert.equal(extensionOf('a.tar.GZ'), 'gz')
  assert.equal(extensionOf('ends.'), null)
})

test('an extension is found by the type, with parameters and under other names', () => {
  assert.equal(extensionFromType('image/png'), 'png')
  assert.equal(extensionFromType('Image/JPG; q=1'), 'jpg')
  assert.equal(extensionFromType('text/plain; charset=utf-8'), 'txt')
  assert.equal(extensionFromType('application/x-unheard-of'), null)
})

test('a media type is judged by its syntax and length only', () => {
  for (const good of ['image/png', 'text/plain; charset=utf-8', 'a/b;c="d \\" e"', 'application/vnd.x+json']) {
    assert.ok(isMediaType(good), good)
  }
  const bad = [
    '',
    'image',
    'image/',
    '/png',
    'image/png;',
    'a/b; c',
    'a/b\r\nx: y',
    'ä/b',
    `a/${'b'.repeat(254)}`,
    'a b/c',
  ]
  for (const text of bad) assert.ok(!isMediaType(text), text)
})

test('types that a browser would run are active', () => {
  for (const active of [
    'text/html; charset=utf-8',
    'IMAGE/SVG+XML',
    'application/atom+xml',
    'text/xml',
    'application/pdf',
  ]) {
    assert.ok(isActiveType(active), active)
  }
  for (const passive of ['image/png', 'text/plain', 'application/json', 'video/mp4']) assert.ok(!isActiveType(passive))
})

test('types that nothing runs, and that nothing is mistaken for, are inert', () => {
  for (const inert of ['image/png', 'IMAGE/JPG', 'video/mp4', 'audio/wav', 'application/octet-stream', 'model/obj'])
    assert.ok(isInertType(inert), inert)
  for (const other of ['image/svg+xml', 'text/plain', 'application/pdf', 'text/html', 'image/unheard-of', 'nonsense'])
    assert.ok(!isInertType(other), other)
})
