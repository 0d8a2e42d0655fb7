/** A model of the catalogue that is to go on with a conversation, by the name that clients of OpenAI give. */
import type { Caller } from '../../accounts/caller.ts'
import { NO_WISH } from '../alternates/choose-providers.ts'
import { RouterError } from '../router-error.ts'
import type { Access } from './model-access.ts'
import type { OpenedModel } from './own-models.ts'

interface OpenedChat {
  readonly opened: OpenedModel
  /** What the provider calls the model. */
  readonly sentName: string
}

const SHOWN_LENGTH = 128
// Of an id and the longest name that a provider has for one of its models.
const MAX_LENGTH = 256

/** Throws, as `open` of the router does: unknown_model, forbidden, not_enabled, rate. */
export async function openChat(
  access: Pick<Access, 'open' | 'choose'>,
  caller: Caller,
  name: string,
  { mayFallBack }: { readonly mayFallBack: boolean },
): Promise<OpenedChat> {
  if (name.length > MAX_LENGTH) throw unknown(name, `it has more than ${MAX_LENGTH} characters`)
  const [provider = '', model = '', ...rest] = name.split('/')
  if (model === '') throw unknown(name, 'it is written {provider}/{model}')
  const { chat = null, ...found } = await access.open(caller, provider, model)
  if (chat === null)
    throw unknown(name, 'it takes no conversations: its input is told by GET /v2/models/{id}/openapi.json')
  const ownName = rest.join('/')
  if (ownName !== '' && chat.defaultName === null) throw unknown(name, `it is called ${provider}/${model}`)
  const sentName = ownName === '' ? (chat.defaultName ?? chat.model.input.modelName) : ownName
  const opened = { ...found, model: chat.model, checkInput: chat.checkInput }
  // What only one provider calls by a name of its own, nobody else is asked for.
  if (chat.defaultName !== null) return { opened, sentName }
  return { opened: await access.choose(caller, opened, { ...NO_WISH, mayFallBack, isChat: true }), sentName }
}

function unknown(name: string, why: string): RouterError {
  const shown = JSON.stringify(name.slice(0, SHOWN_LENGTH))
  return new RouterError('unknown_model', `there is no chat model ${shown}: ${why}. GET /v1/models lists what there is`)
}
