/* Pieces of file work that give up the interpreter's lock once.

   Each function does what several methods of ``platform.disk.Disk`` do one by one, in the same order. Where
   anything is unusual it leaves no trace and returns None: its caller then goes the long way, which has the
   rules and raises the errors. So no rule and no error is here but those of syncs and of a journal that is
   written in part, which must not be repeated.

   With SWIFT_FAULTS, for tests, the N-th system call fails, writes are cut short, or the process is killed. */

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030B0000
#define _GNU_SOURCE
#include <Python.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#define SAFE (O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC)
#define DIRECTORY (O_RDONLY | O_DIRECTORY | O_CLOEXEC)
#define TRIES 5
#define ATTRIBUTES_MAX 16
#define NAMES_BYTES_MAX (1 << 20)
/* The kernel's limit for the value of an attribute. */
#define ATTRIBUTE_BYTES_MAX 65536
#define CHECKSUM_BYTES_MAX 64
#define METADATA "user.swift.metadata"
#define CHECKSUM "user.swift.metadata_checksum"
#define DATA ".data"

#ifdef SWIFT_FAULTS
static long fault_in = -1;
static int fault_errno, fault_lasts, write_bytes_max;
static long calls;

static int fails(void)
{
    calls++;
    if (fault_in < 0 || fault_in-- > 0)
        return 0;
    if (fault_lasts)
        fault_in = 0;
    if (!fault_errno)
        kill(getpid(), SIGKILL);
    errno = fault_errno;
    return 1;
}

#define CALL(call) (fails() ? -1 : (call))
#define WRITABLE(length) (write_bytes_max && (length) > write_bytes_max ? write_bytes_max : (length))
#else
#define CALL(call) (call)
#define WRITABLE(length) (length)
#endif

/* A system call that is made again when a signal interrupted it. */
#define REPEAT(result, call)                         \
    do                                               \
        (result) = CALL(call);                       \
    while ((result) < 0 && errno == EINTR)

static PyObject *stat_result;

/* Return the number of bytes written, which is less than length after an error. */
static Py_ssize_t write_all(int fd, const char *data, Py_ssize_t length)
{
    Py_ssize_t written = 0;
    while (written < length) {
        ssize_t got;
        REPEAT(got, write(fd, data + written, WRITABLE(length - written)));
        if (got <= 0)
            break;
        written += got;
    }
    return written;
}

static int open_regular(const char *path, int flags)
{
    struct stat status;
    int fd, failed;
    REPEAT(fd, open(path, flags | SAFE, 0644));
    if (fd < 0)
        return -1;
    REPEAT(failed, fstat(fd, &status));
    if (failed || !S_ISREG(status.st_mode)) {
        close(fd);
        return -1;
    }
    return fd;
}

/* --- names ---------------------------------------------------------------------------------------------- */

/* Names one after another, each with its NUL. */
struct names {
    char *bytes;
    size_t used, room;
    Py_ssize_t count;
};

static int add_name(struct names *names, const char *name)
{
    size_t length = strlen(name) + 1;
    if (names->used + length > names->room) {
        size_t room = names->room ? names->room * 2 : 1024;
        char *bytes = room > NAMES_BYTES_MAX ? NULL : realloc(names->bytes, room);
        if (bytes == NULL)
            return -1;
        names->bytes = bytes;
        names->room = room;
    }
    memcpy(names->bytes + names->used, name, length);
    names->used += length;
    names->count++;
    return 0;
}

static int read_names(int fd, struct names *names)
{
    char buffer[8192] __attribute__((aligned(8)));
    for (;;) {
        long got = CALL(syscall(SYS_getdents64, fd, buffer, sizeof buffer));
        if (got <= 0)
            return (int)got;
        for (long at = 0; at < got;) {
            struct dirent64 *entry = (struct dirent64 *)(buffer + at);
            const char *name = entry->d_name;
            if (strcmp(name, ".") && strcmp(name, "..") && add_name(names, name))
                return -1;
            at += entry->d_reclen;
        }
    }
}

static PyObject *list_of(const struct names *names)
{
    PyObject *list = PyList_New(0);
    const char *name = names->bytes;
    for (Py_ssize_t i = 0; list != NULL && i < names->count; i++) {
        PyObject *text = PyUnicode_DecodeFSDefault(name);
        if (text == NULL || PyList_Append(list, text))
            Py_CLEAR(list);
        Py_XDECREF(text);
        name += strlen(name) + 1;
    }
    return list;
}

/* --- the only file of a directory ------------------------------------------------------------------------- */

struct sole {
    int fd;
    struct stat status;
    char *metadata, *body;
    ssize_t metadata_bytes, checksum_bytes;
    char checksum[CHECKSUM_BYTES_MAX];
};

static void free_sole(struct sole *sole)
{
    free(sole->metadata);
    free(sole->body);
}

static int fill_sole(struct sole *sole, Py_ssize_t body_bytes_max)
{
    int failed;
    REPEAT(failed, fstat(sole->fd, &sole->status));
    if (failed || !S_ISREG(sole->status.st_mode))
        return -1;
    sole->metadata = malloc(ATTRIBUTE_BYTES_MAX);
    if (sole->metadata == NULL)
        return -1;
    sole->metadata_bytes = CALL(fgetxattr(sole->fd, METADATA, sole->metadata, ATTRIBUTE_BYTES_MAX));
    if (sole->metadata_bytes < 0)
        return -1;
    sole->checksum_bytes = CALL(fgetxattr(sole->fd, CHECKSUM, sole->checksum, CHECKSUM_BYTES_MAX));
    if (sole->checksum_bytes < 0)
        return -1;
    if (sole->status.st_size && sole->status.st_size <= body_bytes_max) {
        ssize_t got;
        sole->body = malloc(sole->status.st_size);
        if (sole->body == NULL)
            return -1;
        REPEAT(got, pread(sole->fd, sole->body, sole->status.st_size, 0));
        if (got != sole->status.st_size)
            return -1;
    }
    return 0;
}

/* Open and read the file if it is the only one and holds data; return true if it was. */
static int read_sole(int directory, const struct names *names, struct sole *sole, Py_ssize_t body_bytes_max)
{
    size_t length = names->count == 1 ? names->used - 1 : 0, suffix = sizeof DATA - 1;
    memset(sole, 0, sizeof *sole);
    sole->fd = -1;
    if (length <= suffix || strcmp(names->bytes + length - suffix, DATA))
        return 0;
    REPEAT(sole->fd, openat(directory, names->bytes, O_RDONLY | SAFE));
    if (sole->fd < 0)
        return 0;
    if (fill_sole(sole, body_bytes_max)) {
        close(sole->fd);
        sole->fd = -1;
        return 0;
    }
    return 1;
}

static PyObject *status_of(const struct stat *s)
{
    PyObject *result, *fields = Py_BuildValue(
        "(kKKkkkLLLLdddLLL)", (unsigned long)s->st_mode, (unsigned long long)s->st_ino,
        (unsigned long long)s->st_dev, (unsigned long)s->st_nlink, (unsigned long)s->st_uid,
        (unsigned long)s->st_gid, (long long)s->st_size, (long long)s->st_atim.tv_sec,
        (long long)s->st_mtim.tv_sec, (long long)s->st_ctim.tv_sec,
        s->st_atim.tv_sec + 1e-9 * s->st_atim.tv_nsec, s->st_mtim.tv_sec + 1e-9 * s->st_mtim.tv_nsec,
        s->st_ctim.tv_sec + 1e-9 * s->st_ctim.tv_nsec,
        s->st_atim.tv_sec * 1000000000LL + s->st_atim.tv_nsec,
        s->st_mtim.tv_sec * 1000000000LL + s->st_mtim.tv_nsec,
        s->st_ctim.tv_sec * 1000000000LL + s->st_ctim.tv_nsec);
    if (fields == NULL)
        return NULL;
    result = PyObject_CallFunctionObjArgs(stat_result, fields, NULL);
    Py_DECREF(fields);
    return result;
}

static PyObject *sole_tuple(const struct sole *sole)
{
    PyObject *status = status_of(&sole->status);
    if (status == NULL)
        return NULL;
    if (sole->body == NULL)
        return Py_BuildValue("(iNy#y#O)", sole->fd, status, sole->metadata, (Py_ssize_t)sole->metadata_bytes,
                             sole->checksum, (Py_ssize_t)sole->checksum_bytes, Py_None);
    return Py_BuildValue("(iNy#y#y#)", sole->fd, status, sole->metadata, (Py_ssize_t)sole->metadata_bytes,
                         sole->checksum, (Py_ssize_t)sole->checksum_bytes, sole->body,
                         (Py_ssize_t)sole->status.st_size);
}

/* Return (fd, names, file), file (None: not read) being (fd, status, metadata, checksum, body). */
static PyObject *directory_tuple(int fd, const struct names *names, const struct sole *sole, int is_read)
{
    PyObject *list = list_of(names), *file;
    if (list == NULL)
        return NULL;
    if (is_read) {
        file = sole_tuple(sole);
        if (file == NULL) {
            Py_DECREF(list);
            return NULL;
        }
    } else {
        file = Py_NewRef(Py_None);
    }
    return Py_BuildValue("(iNN)", fd, list, file);
}

/* --- directories ------------------------------------------------------------------------------------------ */

struct made {
    int path, parent;
};

/* Make a directory, and its parent unless that is below; return -1 when more is missing. */
static int make_directories(const char *path, char *parent, int may_make_parent, struct made *made)
{
    if (CALL(mkdir(path, 0777)) == 0) {
        made->path = 1;
        return 0;
    }
    if (errno == EEXIST)
        return 0;
    if (errno != ENOENT || !may_make_parent)
        return -1;
    if (CALL(mkdir(parent, 0777)) == 0)
        made->parent = 1;
    else if (errno != EEXIST)
        return -1;
    if (CALL(mkdir(path, 0777)) == 0)
        made->path = 1;
    else if (errno != EEXIST)
        return -1;
    return 0;
}

/* Open and lock a directory that is there; return -1 if it is not, or is locked. */
static int lock_directory(const char *path)
{
    struct stat status;
    for (int i = 0; i < TRIES; i++) {
        int fd;
        REPEAT(fd, open(path, DIRECTORY));
        if (fd < 0)
            return -1;
        if (CALL(flock(fd, LOCK_EX | LOCK_NB)) || CALL(fstat(fd, &status))) {
            close(fd);
            return -1;
        }
        if (status.st_nlink)
            return fd;
        close(fd);
    }
    return -1;
}

static int append_parent(PyObject *list, const char *path, size_t length)
{
    PyObject *text = PyUnicode_DecodeFSDefaultAndSize(path, (Py_ssize_t)length);
    int failed = text == NULL || PyList_Append(list, text);
    Py_XDECREF(text);
    return failed;
}

static size_t parent_of(const char *path, size_t length)
{
    while (length && path[length - 1] != '/')
        length--;
    return length ? length - 1 : 0;
}

static const char hold_doc[] =
    "hold(path, below, made) -> (fd, names, file) or None\n\n"
    "Lock a hash directory, after making it unless below is None; made gets the directories with new entries.";

static PyObject *native_hold(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *path = NULL, *below, *made, *result = NULL;
    if (!PyArg_ParseTuple(args, "O&OO!:hold", PyUnicode_FSConverter, &path, &below, &PyList_Type, &made))
        return NULL;
    const char *text = PyBytes_AsString(path);
    size_t length = strlen(text), parent = parent_of(text, length), grandparent = parent_of(text, parent);
    PyObject *below_bytes = NULL;
    char *parent_path = NULL;
    struct names names = {0};
    struct sole sole = {.fd = -1};
    struct made new = {0};
    int fd = -1, is_read = 0, may_make_parent = 0;
    if (below != Py_None) {
        if (!PyUnicode_FSConverter(below, &below_bytes))
            goto done;
        parent_path = strndup(text, parent);
        if (parent_path == NULL) {
            PyErr_NoMemory();
            goto done;
        }
        may_make_parent = grandparent && strcmp(parent_path, PyBytes_AsString(below_bytes));
    }
    Py_BEGIN_ALLOW_THREADS
    if (below_bytes == NULL || make_directories(text, parent_path, may_make_parent, &new) == 0)
        fd = lock_directory(text);
    if (fd >= 0 && !new.path) {
        /* The next listing begins with the first name again. */
        if (read_names(fd, &names) || CALL(lseek(fd, 0, SEEK_SET))) {
            close(fd);
            fd = -1;
        } else {
            is_read = read_sole(fd, &names, &sole, 0);
            if (is_read) {
                close(sole.fd);
                sole.fd = -1;
            }
        }
    }
    Py_END_ALLOW_THREADS
    if ((new.path || new.parent) && append_parent(made, text, parent))
        goto done;
    if (new.parent && append_parent(made, text, grandparent))
        goto done;
    if (fd < 0)
        result = Py_NewRef(Py_None);
    else
        result = directory_tuple(fd, &names, &sole, is_read);
done:
    if (result == NULL && fd >= 0)
        close(fd);
    free_sole(&sole);
    free(names.bytes);
    free(parent_path);
    Py_XDECREF(below_bytes);
    Py_DECREF(path);
    return result;
}

static const char look_doc[] =
    "look(path, opens, body_bytes_max) -> (-1, names, file) or None\n\n"
    "List a hash directory; open its only file if that holds data, and read what belongs to it.";

static PyObject *native_look(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *path = NULL, *result = NULL;
    int opens;
    Py_ssize_t body_bytes_max;
    if (!PyArg_ParseTuple(args, "O&pn:look", PyUnicode_FSConverter, &path, &opens, &body_bytes_max))
        return NULL;
    const char *text = PyBytes_AsString(path);
    struct names names = {0};
    struct sole sole = {.fd = -1};
    int fd, is_read = 0;
    Py_BEGIN_ALLOW_THREADS
    REPEAT(fd, open(text, DIRECTORY));
    if (fd >= 0 && read_names(fd, &names)) {
        close(fd);
        fd = -1;
    }
    if (fd >= 0) {
        is_read = read_sole(fd, &names, &sole, opens ? body_bytes_max : 0);
        if (is_read && !opens) {
            close(sole.fd);
            sole.fd = -1;
        }
        close(fd);
    }
    Py_END_ALLOW_THREADS
    if (fd < 0)
        result = Py_NewRef(Py_None);
    else
        result = directory_tuple(-1, &names, &sole, is_read);
    if (result == NULL && sole.fd >= 0)
        close(sole.fd);
    free_sole(&sole);
    free(names.bytes);
    Py_DECREF(path);
    return result;
}

/* --- files ------------------------------------------------------------------------------------------------ */

static const char create_doc[] =
    "create(directory, body, attributes) -> fd or None\n\n"
    "Return a new file without a name, with its body and attributes, a tuple of pairs (str, bytes).";

static PyObject *native_create(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *directory = NULL, *attributes, *result = NULL;
    Py_buffer body;
    const char *names[ATTRIBUTES_MAX];
    char *values[ATTRIBUTES_MAX];
    Py_ssize_t lengths[ATTRIBUTES_MAX];
    int fd, failed = 0;
    if (!PyArg_ParseTuple(args, "O&y*O!:create", PyUnicode_FSConverter, &directory, &body, &PyTuple_Type,
                          &attributes))
        return NULL;
    const char *directory_text = PyBytes_AsString(directory);
    Py_ssize_t count = PyTuple_Size(attributes);
    if (count > ATTRIBUTES_MAX) {
        result = Py_NewRef(Py_None);
        goto done;
    }
    /* What tuples hold stays as it is while others run. */
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *pair = PyTuple_GetItem(attributes, i), *value;
        if (!PyTuple_CheckExact(pair) || PyTuple_Size(pair) != 2) {
            PyErr_SetString(PyExc_TypeError, "an attribute is a pair of a name and bytes");
            goto done;
        }
        value = PyTuple_GetItem(pair, 1);
        names[i] = PyUnicode_AsUTF8AndSize(PyTuple_GetItem(pair, 0), NULL);
        if (names[i] == NULL || PyBytes_AsStringAndSize(value, &values[i], &lengths[i]))
            goto done;
    }
    Py_BEGIN_ALLOW_THREADS
    REPEAT(fd, open(directory_text, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
    if (fd >= 0) {
        failed = write_all(fd, body.buf, body.len) != body.len;
        for (Py_ssize_t i = 0; !failed && i < count; i++)
            failed = CALL(fsetxattr(fd, names[i], values[i], lengths[i], 0));
        if (failed)
            close(fd);
    }
    Py_END_ALLOW_THREADS
    result = fd < 0 || failed ? Py_NewRef(Py_None) : PyLong_FromLong(fd);
done:
    PyBuffer_Release(&body);
    Py_DECREF(directory);
    return result;
}

static const char publish_doc[] =
    "publish(lock, journal, data, fd, name, dir_fd) -> int\n\n"
    "Append to a journal while its lock file is locked; name a file without a name, unless it is -1, and close\n"
    "it. Return how much was done: 0, 1 or both, 2. Raises OSError when a part of the data was written.";

/* Return the number of bytes that were appended, which is less than length after an error. */
static Py_ssize_t append(const char *lock_path, const char *path, const char *data, Py_ssize_t length)
{
    Py_ssize_t written = 0;
    int code, fd, lock = open_regular(lock_path, O_WRONLY | O_CREAT);
    if (lock < 0)
        return 0;
    if (CALL(flock(lock, LOCK_EX | LOCK_NB)) == 0) {
        fd = open_regular(path, O_WRONLY | O_APPEND | O_CREAT);
        if (fd >= 0) {
            written = write_all(fd, data, length);
            code = errno;
            close(fd);
            errno = code;
        }
    }
    code = errno;
    close(lock);
    errno = code;
    return written;
}

static PyObject *native_publish(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *lock_path = NULL, *path = NULL, *name = NULL, *result = NULL;
    Py_buffer data;
    int fd, dir_fd, done = 0, code;
    if (!PyArg_ParseTuple(args, "O&O&y*iO&i:publish", PyUnicode_FSConverter, &lock_path,
                          PyUnicode_FSConverter, &path, &data, &fd, PyUnicode_FSConverter, &name, &dir_fd))
        return NULL;
    const char *lock_text = PyBytes_AsString(lock_path), *text = PyBytes_AsString(path);
    const char *name_text = PyBytes_AsString(name);
    char link[32];
    Py_ssize_t written;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    Py_BEGIN_ALLOW_THREADS
    written = append(lock_text, text, data.buf, data.len);
    code = errno;
    done = data.len && written == data.len;
    if (done && fd >= 0 && CALL(linkat(AT_FDCWD, link, dir_fd, name_text, AT_SYMLINK_FOLLOW)) == 0) {
        close(fd);
        done = 2;
    }
    Py_END_ALLOW_THREADS
    if (done || !written) {
        result = PyLong_FromLong(done);
    } else {
        errno = code;
        PyErr_SetFromErrno(PyExc_OSError);
    }
    PyBuffer_Release(&data);
    Py_DECREF(lock_path);
    Py_DECREF(path);
    Py_DECREF(name);
    return result;
}

static const char sync_doc[] =
    "sync(fd, directories)\n\n"
    "Sync an open file, then the directories of a tuple. Raises OSError.";

static PyObject *native_sync(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *directories, *paths[ATTRIBUTES_MAX];
    const char *texts[ATTRIBUTES_MAX];
    int fd, failed;
    if (!PyArg_ParseTuple(args, "iO!:sync", &fd, &PyTuple_Type, &directories))
        return NULL;
    Py_ssize_t count = PyTuple_Size(directories), ready = 0, at = 0;
    PyObject *result = NULL;
    if (count > ATTRIBUTES_MAX) {
        PyErr_SetString(PyExc_ValueError, "too many directories");
        return NULL;
    }
    for (; ready < count; ready++) {
        if (!PyUnicode_FSConverter(PyTuple_GetItem(directories, ready), &paths[ready]))
            goto done;
        texts[ready] = PyBytes_AsString(paths[ready]);
    }
    int code, is_open = 1;
    Py_BEGIN_ALLOW_THREADS
    REPEAT(failed, fsync(fd));
    for (; !failed && at < count; at++) {
        int directory;
        REPEAT(directory, open(texts[at], DIRECTORY));
        if (directory < 0) {
            is_open = 0;
            failed = -1;
            break;
        }
        REPEAT(failed, fsync(directory));
        code = errno;
        close(directory);
        errno = code;
    }
    code = errno;
    Py_END_ALLOW_THREADS
    errno = code;
    if (!failed)
        result = Py_NewRef(Py_None);
    else if (is_open)
        PyErr_SetFromErrno(PyExc_OSError);
    else
        PyErr_SetFromErrnoWithFilenameObject(PyExc_OSError, PyTuple_GetItem(directories, at));
done:
    while (ready)
        Py_DECREF(paths[--ready]);
    return result;
}

/* Waits for nothing, and therefore keeps the lock. */
static const char close_doc[] = "close(fd)\n\nClose a descriptor that was only read from.";

static PyObject *native_close(PyObject *Py_UNUSED(module), PyObject *args)
{
    int fd;
    if (!PyArg_ParseTuple(args, "i:close", &fd))
        return NULL;
    close(fd);
    return Py_NewRef(Py_None);
}

#ifdef SWIFT_FAULTS
static const char fault_doc[] =
    "fault(in, errno, lasts, write_bytes_max) -> int\n\n"
    "Let the system call after so many others fail (errno 0: kill the process), and all later ones if it lasts;\n"
    "in < 0: none. Return the number of calls since the last time.";

static PyObject *native_fault(PyObject *Py_UNUSED(module), PyObject *args)
{
    long made = calls;
    calls = 0;
    if (!PyArg_ParseTuple(args, "lipi:fault", &fault_in, &fault_errno, &fault_lasts, &write_bytes_max))
        return NULL;
    return PyLong_FromLong(made);
}
#endif

static PyMethodDef methods[] = {
    {"close", native_close, METH_VARARGS, close_doc},
    {"create", native_create, METH_VARARGS, create_doc},
    {"hold", native_hold, METH_VARARGS, hold_doc},
    {"look", native_look, METH_VARARGS, look_doc},
    {"publish", native_publish, METH_VARARGS, publish_doc},
    {"sync", native_sync, METH_VARARGS, sync_doc},
#ifdef SWIFT_FAULTS
    {"fault", native_fault, METH_VARARGS, fault_doc},
#endif
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "swift.platform.native",
    .m_doc = "Pieces of file work that give up the interpreter's lock once.",
    .m_size = -1,
    .m_methods = methods,
};

PyMODINIT_FUNC PyInit_native(void)
{
    PyObject *os = PyImport_ImportModule("os");
    if (os == NULL)
        return NULL;
    stat_result = PyObject_GetAttrString(os, "stat_result");
    Py_DECREF(os);
    if (stat_result == NULL)
        return NULL;
    return PyModule_Create(&definition);
}
