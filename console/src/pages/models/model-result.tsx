/** What a model answered: its files as media, everything as JSON. Addresses of other hosts are links; nothing of them is loaded. */
import { useEffect, useState } from 'preact/hooks'
import { isJsonObject, type JsonValue, parseLosslessJson } from '../../../../lib/json/lossless-json.ts'
import type { ModelAnswer } from '../../api/models.ts'
import { JsonTree } from '../../components/json/json-tree.tsx'
import { kindOf } from '../../components/media/media.tsx'
import { EmptyState } from '../../components/state.tsx'
import { Money, Words } from '../../components/text.tsx'
import { toMarkedText } from '../../text/marks.ts'

interface Shown {
  readonly files: readonly { readonly name: string; readonly type: string; readonly url: string }[]
  readonly value: JsonValue | null
}

const MAX_JSON = 32 * 1024 * 1024

export function ModelResult({ answer, isBusy }: { readonly answer: ModelAnswer | null; readonly isBusy: boolean }) {
  const shown = useAnswer(answer)
  return (
    <aside class="run-result card" aria-label="Result" aria-busy={isBusy}>
      {answer === null && (
        <EmptyState title={isBusy ? 'Running…' : 'No answer yet'}>
          <p class="dim">{isBusy ? 'Some models take minutes.' : 'Run it: what it answers is shown here.'}</p>
        </EmptyState>
      )}
      {answer !== null && (
        <div class="stack">
          {shown.files.map(({ name, type, url }) => (
            <figure key={url} class="model-file">
              <OneFile name={name} type={type} url={url} />
              <figcaption class="dim">
                <a href={url} download={name}>
                  <Words text={name} />
                </a>
              </figcaption>
            </figure>
          ))}
          {shown.value !== null && <JsonTree name="answer" value={shown.value} isOpen />}
          <p class="dim">
            {answer.creditsUsed !== null && (
              <>
                <Money usd={answer.creditsUsed} /> ·{' '}
              </>
            )}
            {answer.requestId !== null && (
              <>
                request <code>{answer.requestId}</code>
              </>
            )}
          </p>
        </div>
      )}
    </aside>
  )
}

function OneFile({ name, type, url }: Shown['files'][number]) {
  const kind = kindOf(type)
  if (kind === 'image') return <img class="media" src={url} alt={toMarkedText(name)} />
  if (kind === 'video') return <video class="media" src={url} controls aria-label={toMarkedText(name)} />
  if (kind === 'audio') return <audio class="media" src={url} controls aria-label={toMarkedText(name)} />
  return null
}

function useAnswer(answer: ModelAnswer | null): Shown {
  const [shown, setShown] = useState<Shown>({ files: [], value: null })
  useEffect(() => {
    if (answer === null) return
    const urls: string[] = []
    let isGone = false
    const keep = (blob: Blob) => {
      const url = URL.createObjectURL(blob)
      urls.push(url)
      return url
    }
    const read = async (): Promise<Shown> => {
      const type = answer.contentType.split(';')[0]
      if (!type.endsWith('json'))
        return { files: [{ name: `answer.${type.split('/')[1] ?? 'bin'}`, type, url: keep(answer.blob) }], value: null }
      if (answer.blob.size > MAX_JSON) return { files: [], value: null }
      const value = parseLosslessJson(await answer.blob.text())
      const files = filesIn(value).map(({ name, type: own, bytes }) => ({
        name,
        type: own,
        url: keep(new Blob([bytes as BlobPart], { type: own })),
      }))
      return { files, value: withoutBytes(value) }
    }
    void read().then((next) => !isGone && setShown(next))
    return () => {
      isGone = true
      for (const url of urls) URL.revokeObjectURL(url)
    }
  }, [answer])
  return shown
}

/** Files of our own answers have `data` and `content_type`; those of many providers `b64_json`, with or without a `mime_type`. */
function filesIn(value: JsonValue): readonly { name: string; type: string; bytes: Uint8Array }[] {
  if (!isJsonObject(value)) return []
  const list = [value['files'], value['data']].flatMap((part) => (Array.isArray(part) ? part : []))
  return list.flatMap((file, index) => {
    if (!isJsonObject(file)) return []
    const [data, type] =
      file['b64_json'] === undefined
        ? [file['data'], file['content_type']]
        : [file['b64_json'], file['mime_type'] ?? 'image/png']
    if (typeof data !== 'string' || typeof type !== 'string' || !/^[A-Za-z0-9+/=\s]*$/.test(data)) return []
    const bytes = Uint8Array.from(atob(data), (character) => character.charCodeAt(0))
    const { name } = file
    return [{ name: typeof name === 'string' ? name : `${index + 1}.${type.split('/')[1] ?? 'bin'}`, type, bytes }]
  })
}

const LONG = 2000

/** Long texts of bytes tell a person nothing. */
function withoutBytes(value: JsonValue): JsonValue {
  if (typeof value === 'string')
    return value.length > LONG ? `${value.slice(0, 64)}… (${value.length} characters)` : value
  if (Array.isArray(value)) return value.map(withoutBytes)
  if (!isJsonObject(value)) return value
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, withoutBytes(item)]))
}
