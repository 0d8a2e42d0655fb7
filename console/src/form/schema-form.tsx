/** The form of a schema: fields, groups in frames, lists with rows to add and take away, and a choice where a value has several shapes. */
import { useState } from 'preact/hooks'
import { request } from '../api/client.ts'
import { FileButtons } from '../components/files/file-buttons.tsx'
import { Icon } from '../components/icon.tsx'
import type { MediaItem } from '../components/media/media.tsx'
import { Words } from '../components/text.tsx'
import { formatBytes, plural } from '../text/format.ts'
import { toMarkedText } from '../text/marks.ts'
import { FieldControl, FieldShell } from './field-control.tsx'
import { beginDraft, chooseShape, type Draft, textIn } from './schema/schema-draft.ts'
import {
  bytesOf,
  type GroupNode,
  type LeafNode,
  type ListNode,
  type MediaForm,
  type SchemaNode,
  type ShapesNode,
  writeMedia,
} from './schema/schema-tree.ts'

interface PartProps<Node extends SchemaNode> {
  readonly node: Node
  readonly draft: Draft
  /** By number, from the whole down to this part. */
  readonly path: string
  readonly problems: ReadonlyMap<string, string>
  readonly onDraft: (draft: Draft) => void
}

/** So few that folding them would hide more than it clears. */
const FEW = 4
const COMMON = /prompt|text|image|video|audio|mask|seed|size|width|height|aspect|ratio|duration|resolution|voice|input/i

/** The whole: what is needed or commonly changed stands first, the rest is folded. */
export function SchemaForm(props: PartProps<GroupNode>) {
  const { node, draft } = props
  if (draft.kind !== 'group') return null
  const isFirst = (part: SchemaNode) => part.isRequired || COMMON.test(part.name)
  const rest = node.parts.filter((part) => !isFirst(part))
  const isFolded = rest.length > FEW && rest.length < node.parts.length
  const shown = node.parts.map((part, index) => ({ part, index }))
  return (
    <>
      {shown
        .filter(({ part }) => !isFolded || isFirst(part))
        .map(({ index }) => (
          <PartAt key={index} {...props} index={index} />
        ))}
      {isFolded && (
        <details class="run-rest">
          <summary>{plural(rest.length, 'more input')}</summary>
          {shown
            .filter(({ part }) => !isFirst(part))
            .map(({ index }) => (
              <PartAt key={index} {...props} index={index} />
            ))}
        </details>
      )}
    </>
  )
}

/** One part of a group. */
function PartAt({ node, draft, path, problems, onDraft, index }: PartProps<GroupNode> & { readonly index: number }) {
  if (draft.kind !== 'group') return null
  return (
    <Part
      node={node.parts[index]}
      draft={draft.parts[index]}
      path={`${path}/${index}`}
      problems={problems}
      onDraft={(next) => onDraft({ ...draft, parts: draft.parts.with(index, next) })}
    />
  )
}

function Part(props: PartProps<SchemaNode>) {
  const { node, ...rest } = props
  if (node.kind === 'leaf') return <Leaf node={node} {...rest} />
  if (node.kind === 'list') return <List node={node} {...rest} />
  if (node.kind === 'shapes') return <Shapes node={node} {...rest} />
  return <Group node={node} {...rest} />
}

function idOf(path: string): string {
  return `schema${path.replaceAll('/', '-')}`
}

function Leaf({ node, draft, path, problems, onDraft }: PartProps<LeafNode>) {
  if (draft.kind !== 'leaf') return null
  const { field, name, isRequired, about, media } = node
  const id = idOf(path)
  // What nobody has touched is not called wrong yet.
  const problem = draft.text === null ? null : (problems.get(path) ?? null)
  const text = textIn(node, draft)
  const label = name === '' ? 'value' : name
  return (
    <FieldShell
      id={id}
      kind={media === null ? field.kind : 'file'}
      name={label}
      beside={isRequired && name !== '' && <span class="dim needed">needed</span>}
      problem={problem}
      about={about}
    >
      {(describedBy) =>
        media === null ? (
          <FieldControl
            {...{ field, id, text, isWrong: problem !== null, about: describedBy, isOptional: !isRequired }}
            onText={(next) => onDraft({ kind: 'leaf', text: next })}
          />
        ) : (
          <MediaControl
            {...{ id, label, media, text, fileName: draft.fileName, isWrong: problem !== null, describedBy }}
            onText={(next, fileName) =>
              onDraft({ kind: 'leaf', text: next, ...(fileName !== undefined && { fileName }) })
            }
          />
        )
      }
    </FieldShell>
  )
}

function Heading({ node }: { readonly node: SchemaNode }) {
  return (
    <legend>
      <Words text={node.name === '' ? 'item' : node.name} />
      {node.isRequired && node.name !== '' && <span class="dim needed"> needed</span>}
    </legend>
  )
}

function About({ node }: { readonly node: SchemaNode }) {
  if (node.about === null) return null
  return (
    <p class="dim">
      <Words text={node.about} />
    </p>
  )
}

function Group(props: PartProps<GroupNode>) {
  const parts = props.node.parts.map((_, index) => <PartAt key={index} {...props} index={index} />)
  // A row of a list, or a shape, stands in a frame already.
  if (props.node.name === '') return <div>{parts}</div>
  return (
    <fieldset class="field-frame">
      <Heading node={props.node} />
      <About node={props.node} />
      {parts}
    </fieldset>
  )
}

function List({ node, draft, path, problems, onDraft }: PartProps<ListNode>) {
  if (draft.kind !== 'list') return null
  const { items } = draft
  const name = toMarkedText(node.name === '' ? 'list' : node.name)
  const problem = problems.get(path)
  return (
    <fieldset class="field-frame">
      <Heading node={node} />
      <About node={node} />
      {items.map((item, index) => (
        <div key={index} class="list-row">
          <div class="list-row-part">
            <Part
              node={node.item}
              draft={item}
              path={`${path}/${index}`}
              problems={problems}
              onDraft={(next) => onDraft({ kind: 'list', items: items.with(index, next) })}
            />
          </div>
          <button
            type="button"
            class="icon-button"
            aria-label={`Take ${index + 1} out of ${name}`}
            onClick={() => onDraft({ kind: 'list', items: items.toSpliced(index, 1) })}
          >
            <Icon name="cross" />
          </button>
        </div>
      ))}
      <button
        type="button"
        class="button small"
        disabled={items.length >= node.most}
        aria-label={`Add to ${name}`}
        onClick={() => onDraft({ kind: 'list', items: [...items, beginDraft(node.item)] })}
      >
        <Icon name="plus" /> Add
      </button>
      {problem !== undefined && items.length > 0 && <p class="failed-text">{problem}</p>}
    </fieldset>
  )
}

function Shapes({ node, draft, path, problems, onDraft }: PartProps<ShapesNode>) {
  if (draft.kind !== 'shapes') return null
  const shape = node.shapes[draft.at]
  const id = idOf(path)
  return (
    <fieldset class="field-frame">
      <Heading node={node} />
      <About node={node} />
      <div class="field">
        <label for={id}>as</label>
        <div class="field-control">
          <select
            id={id}
            value={String(draft.at)}
            onChange={(event) => onDraft(chooseShape(node, Number(event.currentTarget.value)))}
          >
            {!node.isRequired && <option value="-1">nothing</option>}
            {node.shapes.map(({ label }, index) => (
              <option key={index} value={String(index)}>
                {toMarkedText(label)}
              </option>
            ))}
          </select>
        </div>
      </div>
      {shape !== undefined && draft.draft !== null && (
        <Part
          key={draft.at}
          node={shape.node}
          draft={draft.draft}
          path={`${path}/${draft.at}`}
          problems={problems}
          onDraft={(next) => onDraft({ ...draft, draft: next })}
        />
      )}
    </fieldset>
  )
}

/** Larger ones would not pass as a part of a request. */
const MAX_BYTES = 24 * 1024 * 1024

interface MediaControlProps {
  readonly id: string
  readonly label: string
  readonly media: MediaForm
  readonly text: string
  readonly fileName: string | undefined
  readonly isWrong: boolean
  readonly describedBy: string | undefined
  readonly onText: (text: string, fileName?: string) => void
}

/** A picture, video or sound for a model: its bytes go into the input itself, or an address that the provider can reach is typed. */
function MediaControl(props: MediaControlProps) {
  const { id, label, media, text, fileName, isWrong, describedBy, onText } = props
  const [state, setState] = useState<'idle' | 'busy' | string>('idle')
  async function take(name: string, size: number, read: () => Promise<Blob>): Promise<void> {
    if (size > MAX_BYTES) return setState(`at most ${formatBytes(MAX_BYTES)} fit into a call`)
    setState('busy')
    try {
      onText(writeMedia(await toDataUri(await read()), media), name)
      setState('idle')
    } catch {
      setState('this file could not be read')
    }
  }
  const bytes = bytesOf(text)
  return (
    <>
      <FileButtons
        label={label}
        media={media.kind}
        isBusy={state === 'busy'}
        onFiles={([file]) => void take(file.name, file.size, () => Promise.resolve(file))}
        onAssets={([asset]) => void take(asset.name, asset.size_bytes, () => readAsset(asset))}
      >
        {bytes === null ? (
          <input
            id={id}
            type="text"
            spellcheck={false}
            placeholder="an address, or a file"
            aria-invalid={isWrong}
            aria-describedby={describedBy}
            value={text}
            onInput={(event) => onText(event.currentTarget.value)}
          />
        ) : (
          <span class="file-chip">
            {text.startsWith('data:image/') && <img class="file-chip-picture" src={text} alt="" />}
            <span class="file-chip-name">
              <Words text={fileName ?? 'a file'} /> <span class="dim">{formatBytes(bytes)}</span>
            </span>
            <button type="button" id={id} class="icon-button" aria-label="Take it away" onClick={() => onText('')}>
              <Icon name="cross" />
            </button>
          </span>
        )}
      </FileButtons>
      {state !== 'idle' && state !== 'busy' && <p class="failed-text field-note">{state}</p>}
    </>
  )
}

async function readAsset({ asset_id: assetId }: MediaItem): Promise<Blob> {
  return (await request(`/api/v2/assets/${encodeURIComponent(assetId)}/content`)).blob()
}

function toDataUri(blob: Blob): Promise<string> {
  return new Promise((resolve, reject) => {
    const reader = new FileReader()
    reader.onload = () => resolve(String(reader.result))
    reader.onerror = () => reject(reader.error)
    reader.readAsDataURL(blob)
  })
}
