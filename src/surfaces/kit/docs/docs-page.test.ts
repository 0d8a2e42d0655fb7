import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type DocumentNode, escapeHtml, renderPage, toInlineHtml } from './docs-page.ts'

const EVIL = '<script>alert("x")</script>'

test('text never becomes markup', () => {
  assert.equal(escapeHtml(`<a href="x">'&`), '&lt;a href=&quot;x&quot;&gt;&#39;&amp;')
  assert.equal(toInlineHtml('use `<b>` & go'), 'use <code>&lt;b&gt;</code> &amp; go')
})

test('whatever a document says, the page holds no script but its own, and no foreign markup', () => {
  const document: DocumentNode = {
    info: { title: EVIL, version: EVIL, description: EVIL },
    tags: [{ name: 'jobs', description: EVIL }],
    paths: {
      [`/x${EVIL}`]: {
        get: {
          operationId: EVIL,
          tags: ['jobs'],
          summary: EVIL,
          description: EVIL,
          parameters: [{ name: EVIL, in: EVIL, description: EVIL, schema: { type: EVIL } }],
          requestBody: {
            content: {
              [EVIL]: { schema: { $ref: `#/${EVIL}` } },
              x: { schema: { properties: { [EVIL]: { properties: { [EVIL]: { description: EVIL } } } } } },
            },
          },
          'x-codeSamples': [{ label: EVIL, source: EVIL }],
          responses: { [EVIL]: { description: EVIL, content: { [EVIL]: {} } } },
        },
      },
    },
    components: { responses: {}, schemas: { [EVIL]: { properties: { [EVIL]: { enum: [EVIL], default: EVIL } } } } },
  }
  const page = renderPage(document, {
    documentUrl: `http://x${EVIL}`,
    exampleUrl: `http://x${EVIL}`,
    others: [{ url: EVIL, title: EVIL }],
  })
  assert.equal(page.match(/<script/gi)?.length, 1)
  assert.doesNotMatch(page, /alert\("x"\)/)
})
