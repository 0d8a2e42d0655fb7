/** A JSON value to unfold. Parts are made when they are opened, so a large one costs nothing at first. */
import { useState } from 'preact/hooks'
import { isJsonObject, type JsonValue, stringifyLosslessJson } from '../../../../lib/json/lossless-json.ts'
import { plural } from '../../text/format.ts'
import { Words } from '../text.tsx'

interface JsonTreeProps {
  readonly value: JsonValue
  readonly name: string
  readonly isOpen?: boolean
}

const MAX_CHILDREN = 1000

export function JsonTree({ value, name, isOpen = false }: JsonTreeProps) {
  const [isShown, setShown] = useState(isOpen)
  const entries: readonly [string, JsonValue][] | null = Array.isArray(value)
    ? value.map((item, index) => [String(index), item])
    : isJsonObject(value)
      ? Object.entries(value)
      : null
  if (entries === null || entries.length === 0 || isShort(value))
    return (
      <div class="json-leaf">
        <span class="json-name">
          <Words text={name} />
        </span>{' '}
        <span class={`json-value json-${typeof value}`}>
          <Words text={stringifyLosslessJson(value)} />
        </span>
      </div>
    )
  return (
    <details class="json-branch" open={isShown} onToggle={(event) => setShown(event.currentTarget.open)}>
      <summary>
        <span class="json-name">
          <Words text={name} />
        </span>{' '}
        <span class="dim">
          <Words text={labelOf(value, entries.length)} />
        </span>
      </summary>
      {isShown && (
        <div class="json-children">
          {entries.slice(0, MAX_CHILDREN).map(([key, child]) => (
            <JsonTree key={key} name={key} value={child} isOpen={name === 'workflow' && entries.length <= 30} />
          ))}
          {entries.length > MAX_CHILDREN && <p class="dim">… {entries.length - MAX_CHILDREN} more: see the JSON.</p>}
        </div>
      )}
    </details>
  )
}

/** A node is named by its class and title; anything else by its size. */
function labelOf(value: JsonValue, size: number): string {
  if (!isJsonObject(value)) return plural(size, 'item')
  const { class_type: classType, _meta: meta } = value
  if (typeof classType !== 'string') return plural(size, 'key')
  const title = isJsonObject(meta) && typeof meta['title'] === 'string' ? ` · ${meta['title']}` : ''
  return `${classType}${title}`
}

/** Links such as ["4", 0] are read at a glance. */
function isShort(value: JsonValue): boolean {
  return Array.isArray(value) && value.length <= 4 && value.every((item) => typeof item !== 'object' || item === null)
}
