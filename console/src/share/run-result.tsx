/** One run: how far it is, what it made, what it was made with. */
import { useEffect, useState } from 'preact/hooks'
import { indentJson } from '../../../lib/json/indent-json.ts'
import { stringifyLosslessJson } from '../../../lib/json/lossless-json.ts'
import { Icon } from '../components/icon.tsx'
import { Words } from '../components/text.tsx'
import { toMarkedText } from '../text/marks.ts'
import { isOver, type SharedOutput, type SharedRun } from './share-api.ts'

const STATUS: Readonly<Record<SharedRun['status'], string>> = {
  queued: 'Waiting',
  running: 'Running',
  succeeded: 'Done',
  failed: 'Failed',
  canceled: 'Stopped',
  expired: 'Gone',
}

interface RunResultProps {
  readonly run: SharedRun
  readonly preview: string | null
  readonly onStop: () => void
  readonly onAgain: () => void
}

export function RunResult({ run, preview, onStop, onAgain }: RunResultProps) {
  const { status, progress, error, outputs, inputs, queue_position: position } = run
  const percent = Math.round(100 * (progress?.value ?? 0))
  const steps = progress?.steps == null ? '' : `, step ${progress.step ?? 0} of ${progress.steps}`
  const ahead = position !== null && position > 1 ? `, ${position - 1} before it` : ''
  return (
    <div class="stack">
      <p class="row" role="status" data-status={status}>
        {STATUS[status]}
        {status === 'queued' ? ahead : ''}
        {status === 'running' ? steps : ''}
      </p>
      {!isOver(run) && (
        <>
          <progress class="share-progress" aria-label="Progress" max={100} value={percent} />
          {preview !== null && <img class="media" src={preview} alt="What it looks like so far" />}
          <div>
            <button type="button" class="button small" onClick={onStop}>
              <Icon name="stop" /> Stop
            </button>
          </div>
        </>
      )}
      {error !== null && (
        <p class="failed-text">
          <Words text={error.message} />
        </p>
      )}
      {outputs.map((output) => (
        <Output key={output.url} output={output} />
      ))}
      {inputs !== null && (
        <details>
          <summary>What it was made with</summary>
          <pre class="run-inputs" tabIndex={0}>
            {indentJson(stringifyLosslessJson(withoutAddresses(run)))}
          </pre>
        </details>
      )}
      {inputs !== null && Object.keys(inputs).length > 0 && (
        <div>
          <button type="button" class="button small" onClick={onAgain}>
            <Icon name="again" /> Use these inputs again
          </button>
        </div>
      )}
    </div>
  )
}

/** The address of a file holds the secret of the page: it is nothing to be copied from here. */
function withoutAddresses({ inputs }: SharedRun) {
  return Object.fromEntries(
    Object.entries(inputs ?? {}).map(([name, value]) => [
      name,
      typeof value === 'object' && value !== null && 'url' in value ? '(a file)' : value,
    ]),
  )
}

function Output({ output }: { readonly output: SharedOutput }) {
  const { title, name, content_type: type, url } = output
  const label = toMarkedText(title === '' ? name : title)
  return (
    <figure class="share-output">
      <Shown label={label} type={type} url={url} />
      <figcaption class="row">
        <Words text={title === '' ? name : title} />
        <a class="button small" href={`${url}?download=1`} download>
          <Icon name="down" /> Download
        </a>
      </figcaption>
    </figure>
  )
}

function Shown({ label, type, url }: { readonly label: string; readonly type: string; readonly url: string }) {
  if (type.startsWith('image/')) return <img class="media" src={url} alt={label} />
  if (type.startsWith('video/')) return <video class="media" src={url} controls preload="metadata" aria-label={label} />
  if (type.startsWith('audio/')) return <audio class="media" src={url} controls preload="metadata" aria-label={label} />
  return type.startsWith('text/plain') ? <Text url={url} /> : null
}

const MAX_SHOWN = 20_000

function Text({ url }: { readonly url: string }) {
  const [text, setText] = useState('')
  useEffect(() => {
    const controller = new AbortController()
    fetch(url, { signal: controller.signal })
      .then((response) => (response.ok ? response.text() : ''))
      .then((whole) => setText(whole.slice(0, MAX_SHOWN)))
      .catch(() => {})
    return () => controller.abort()
  }, [url])
  return (
    <pre class="media-text" tabIndex={0}>
      <Words text={text} isBlock />
    </pre>
  )
}
