// The module in this page: one instance here for what is quick, some in workers for simulations.

const WORKERS_MAX = 4;
// Answers kept: going back is then at once.
const ANSWERS_MAX = 400;

class Lodger {
  static async load() {
    const text = document.getElementById("module").textContent.trim();
    const packed = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
    const bytes = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
    const lodger = new Lodger();
    lodger.module = await WebAssembly.compile(await new Response(bytes).arrayBuffer());
    lodger.here = await WebAssembly.instantiate(lodger.module, {});
    lodger.answers = new Map();
    lodger.waiting = [];
    lodger.idle = [];
    lodger.busy = new Set();
    lodger.script = URL.createObjectURL(
      new Blob([ask.toString(), "\n", document.getElementById("worker").textContent], { type: "text/javascript" }));
    const workers = Math.min(WORKERS_MAX, Math.max(2, navigator.hardwareConcurrency || 2));
    for (let i = 0; i < workers; i++) lodger.hire();
    return lodger;
  }

  hire() {
    const worker = new Worker(this.script);
    worker.postMessage({ module: this.module });
    worker.onmessage = ({ data }) => this.heard(worker, data);
    this.idle.push(worker);
    this.give();
  }

  // At once; for what does not simulate.
  quickly(question) {
    return understood(ask(this.here, JSON.stringify(question)));
  }

  // A promise of the answer. `how.long`: it takes seconds; `how.keep`: it is wanted whatever is chosen meanwhile.
  answer(question, how = {}) {
    const text = JSON.stringify(question);
    const known = this.answers.get(text);
    if (known) return known;
    const promise = new Promise((resolve, reject) => this.waiting.push({ text, resolve, reject, ...how }));
    this.answers.set(text, promise);
    promise.catch(() => this.answers.delete(text));
    if (this.answers.size > ANSWERS_MAX) this.answers.delete(this.answers.keys().next().value);
    this.give();
    return promise;
  }

  // Something else is asked now: drops what waits, and long work under way.
  forget() {
    const drop = ({ text, reject }) => {
      this.answers.delete(text);
      reject(new Forgotten());
    };
    this.waiting.filter((work) => !work.keep).forEach(drop);
    this.waiting = this.waiting.filter((work) => work.keep);
    for (const worker of this.busy) {
      if (!worker.work.long) continue;
      drop(worker.work);
      this.dismiss(worker);
      this.hire();
    }
  }

  dismiss(worker) {
    worker.terminate();
    this.busy.delete(worker);
  }

  give() {
    while (this.idle.length && this.waiting.length) {
      const worker = this.idle.shift();
      worker.work = this.waiting.shift();
      this.busy.add(worker);
      worker.postMessage({ id: 0, question: worker.work.text });
    }
  }

  heard(worker, { answer, trap }) {
    const work = worker.work;
    if (trap) {
      this.dismiss(worker);
      work.reject(new Error(`the simulator stopped: ${trap}. This is a defect of it: please report it with this page's link`));
      return this.hire();
    }
    try {
      work.resolve(understood(answer));
    } catch (error) {
      work.reject(error);
    }
    this.busy.delete(worker);
    this.idle.push(worker);
    this.give();
  }
}

// Something else was asked meanwhile.
class Forgotten extends Error {}

function understood(text) {
  const answer = JSON.parse(text);
  if (answer.error) throw new Error(answer.hint ? `${answer.error} (${answer.hint})` : answer.error);
  return answer;
}
